import java.io.File;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.Arrays;

/**
 * Runs a main class with a configuration folder visible as resources: Launch CONF_DIR MAIN_CLASS [ARG...].
 *
 * <p>The folder is not on the class path of the JVM, because a class path with a folder on it cannot use a shared class
 * archive. With -Dlaunch.attached=true the JVM ends when its standard input does, that is with whoever started it.
 */
public final class Launch {
    public static void main(String[] args) throws Throwable {
        if (Boolean.getBoolean("launch.attached")) {
            Thread watch = new Thread(Launch::endWithStandardInput, "end with standard input");
            watch.setDaemon(true);
            watch.start();
        }
        URL[] folder = {new File(args[0]).toURI().toURL()};
        Thread.currentThread().setContextClassLoader(new URLClassLoader(folder, Launch.class.getClassLoader()));
        String[] rest = Arrays.copyOfRange(args, 2, args.length);
        Class.forName(args[1]).getMethod("main", String[].class).invoke(null, (Object) rest);
    }

    private static void endWithStandardInput() {
        try {
            while (System.in.read() >= 0) {
                // nobody writes anything that matters
            }
        } catch (IOException closed) {
            // the same as its end
        }
        Runtime.getRuntime().halt(1);
    }
}
