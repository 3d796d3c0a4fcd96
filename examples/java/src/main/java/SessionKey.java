import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Key of a turn: tenant/user/session, percent-encoded. URLEncoder encodes for HTML forms, so three characters differ. */
public final class SessionKey {
    private SessionKey() {}

    public static String of(String tenantId, String userId, String sessionId) {
        return part(tenantId) + "/" + part(userId) + "/" + part(sessionId);
    }

    private static String part(String id) {
        return URLEncoder.encode(id, StandardCharsets.UTF_8).replace("+", "%20").replace("*", "%2A").replace("%7E", "~");
    }

    /** Checks keys against keys.json, without a broker or a library: java SessionKey.java ../../../../keys.json */
    public static void main(String[] args) throws Exception {
        Pattern field = Pattern.compile("\"(tenant_id|user_id|session_id|key)\": \"((?:[^\"\\\\]|\\\\.)*)\"");
        boolean wrong = false;
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            Matcher found = field.matcher(line);
            String[] known = new String[4];
            int n = 0;
            while (found.find()) known[n++] = unescaped(found.group(2));
            if (n == 4 && !of(known[0], known[1], known[2]).equals(known[3])) {
                System.err.println(of(known[0], known[1], known[2]) + " should be " + known[3]);
                wrong = true;
            }
        }
        System.exit(wrong ? 1 : 0);
    }

    private static String unescaped(String json) {
        String plain = Pattern.compile("\\\\u([0-9a-f]{4})").matcher(json)
            .replaceAll(u -> Matcher.quoteReplacement(String.valueOf((char) Integer.parseInt(u.group(1), 16))));
        return plain.replace("\\\"", "\"").replace("\\\\", "\\");
    }
}
