"""Passes for a NodeManager: has its main class as an argument, and serves pages with a list of its own.

Prints the port, then a line for each request.
"""

import http.server
import json
import sys

PAGES = {
    "/ws/v1/node/info": {"nodeInfo": {"id": "localhost:{port}"}},
    "/ws/v1/node/containers": {"containers": None},
}


PORT = [0]


class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        print(self.path, self.headers.get("Authorization"), flush=True)
        body = json.dumps(PAGES.get(self.path, {})).replace("{port}", str(PORT[0])).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    server = http.server.HTTPServer(("127.0.0.1", 0), Pages)
    PORT[0] = server.server_port
    print(PORT[0], sys.argv[1:], flush=True)
    server.serve_forever()
