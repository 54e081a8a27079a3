"""Makes a directory full of links to one file, named as files of Fallow: FOLDER MODE FILE NAME…"""

import sys
from pathlib import Path

folder = Path(sys.argv[1])
folder.mkdir()
for name in sys.argv[4:]:
    (folder / name).symlink_to(sys.argv[3])
folder.chmod(int(sys.argv[2], 8))
print("ready", flush=True)
