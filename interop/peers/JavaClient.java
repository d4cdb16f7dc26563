import java.io.*;
import java.net.URI;
import java.net.http.*;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import javax.net.ssl.*;

/** java.net.http.HttpClient as a client: HTTP/2 over TLS. It has no API for trailers. */
public class JavaClient {
    interface Case { void run() throws Exception; }

    static String base;
    static byte[] large;
    static HttpClient http;

    public static void main(String[] words) throws Exception {
        Map<String, String> given = new HashMap<>();
        for (int n = 0; n + 1 < words.length; n += 2) given.put(words[n], words[n + 1]);
        base = given.get("--base");
        large = Files.readAllBytes(Path.of(given.get("--body")));
        http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_2).sslContext(trusting(given.get("--ca")))
            .connectTimeout(Duration.ofSeconds(10)).build();
        Map<String, Case> cases = cases();
        for (String name : given.get("--cases").split(",")) {
            Case one = cases.get(name);
            if (one == null) { report(name, "n/a", ""); continue; }
            try {
                one.run();
                report(name, "pass", "");
            } catch (Throwable why) {
                report(name, "fail", why.toString());
            }
        }
        System.exit(0);
    }

    static Map<String, Case> cases() {
        Map<String, Case> cases = new HashMap<>();
        byte[] hello = bytes("hello\n"), nothing = {};
        cases.put("get", JavaClient::small);
        cases.put("get-5m", () -> expect(at("/large"), 200, large));
        cases.put("post-5m", () -> expect(at("/echo").POST(BodyPublishers.ofByteArray(large)), 200, large));
        cases.put("head", () -> {
            var got = expect(at("/small").method("HEAD", BodyPublishers.noBody()), 200, nothing);
            String length = got.headers().firstValue("content-length").orElse("none");
            if (!length.equals("6")) throw new IOException("content-length " + length);
        });
        cases.put("204", () -> expect(at("/204"), 204, nothing));
        cases.put("304", () -> expect(at("/304"), 304, nothing));
        cases.put("parallel-100", () -> { small(); many(100, 100); });
        cases.put("goaway", () -> { report("goaway", "started", ""); many(200, 10); });
        cases.put("fields-8k", JavaClient::fields);
        cases.put("early", () -> {
            expect(at("/early").POST(BodyPublishers.ofInputStream(Slowly::new)), 200, bytes("early\n"));
            small();
        });
        cases.put("cancel", () -> {
            for (int n = 0; n < 5; n++) {
                try (InputStream body = http.send(at("/large").build(), BodyHandlers.ofInputStream()).body()) {
                    body.readNBytes(100_000);
                }
                small();
            }
        });
        cases.put("slow-reader", () -> {
            ByteArrayOutputStream got = new ByteArrayOutputStream();
            try (InputStream body = http.send(at("/large").build(), BodyHandlers.ofInputStream()).body()) {
                for (byte[] piece; (piece = body.readNBytes(250_000)).length > 0; ) {
                    got.write(piece);
                    Thread.sleep(50);
                    small();
                }
            }
            if (!Arrays.equals(got.toByteArray(), large)) throw new IOException(got.size() + " bytes that differ");
        });
        return cases;
    }

    static SSLContext trusting(String file) throws Exception {
        KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
        trusted.load(null);
        try (InputStream in = new FileInputStream(file)) {
            trusted.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(in));
        }
        TrustManagerFactory managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        managers.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, managers.getTrustManagers(), null);
        return context;
    }

    static byte[] bytes(String text) { return text.getBytes(StandardCharsets.UTF_8); }

    static HttpRequest.Builder at(String path) {
        return HttpRequest.newBuilder(URI.create(base + path)).timeout(Duration.ofSeconds(10));
    }

    static void small() throws Exception { expect(at("/small"), 200, bytes("hello\n")); }

    static HttpResponse<byte[]> expect(HttpRequest.Builder request, int status, byte[] body) throws Exception {
        return check(http.send(request.build(), BodyHandlers.ofByteArray()), status, body);
    }

    static HttpResponse<byte[]> check(HttpResponse<byte[]> got, int status, byte[] body) throws IOException {
        if (got.statusCode() != status || got.version() != HttpClient.Version.HTTP_2)
            throw new IOException("status " + got.statusCode() + " over " + got.version());
        if (!Arrays.equals(got.body(), body)) throw new IOException(got.body().length + " bytes that differ");
        return got;
    }

    static void many(int count, int at) throws Exception {
        Semaphore slots = new Semaphore(at);
        List<CompletableFuture<String>> all = new ArrayList<>();
        for (int n = 0; n < count; n++) {
            slots.acquire();
            all.add(http.sendAsync(at("/wait?ms=50").build(), BodyHandlers.ofByteArray()).handle((got, error) -> {
                slots.release();
                if (error != null) return error.toString();
                try { check(got, 200, bytes("hello\n")); return null; } catch (IOException why) { return why.toString(); }
            }));
        }
        List<String> failed = new ArrayList<>();
        for (var one : all) if (one.get(30, TimeUnit.SECONDS) != null) failed.add(one.get());
        if (!failed.isEmpty()) throw new IOException(failed.size() + " of " + count + " failed: " + failed.get(0));
    }

    static void fields() throws Exception {
        HttpRequest.Builder request = at("/fields");
        StringBuilder want = new StringBuilder();
        for (int n = 0; n < 40; n++) {
            String name = String.format("x-f-%02d", n), value = String.format("%02d", n).repeat(75);
            request.header(name, value);
            want.append(name).append(": ").append(value).append('\n');
        }
        StringJoiner cookies = new StringJoiner("; ");
        for (int n = 0; n < 20; n++) cookies.add(String.format("c%02d=", n) + "v".repeat(96));
        request.header("cookie", cookies.toString());
        expect(request, 200, bytes(want.append("cookie: ").append(cookies).append('\n').toString()));
    }

    /** A body that does not end before an early response has had time to arrive. */
    static class Slowly extends InputStream {
        int left = 5_000_000;
        @Override public int read() { return left-- > 0 ? 0 : -1; }
        @Override public int read(byte[] into, int from, int length) {
            if (left <= 0) return -1;
            try { Thread.sleep(5); } catch (InterruptedException ignored) { return -1; }
            int n = Math.min(length, Math.min(left, 16_384));
            left -= n;
            return n;
        }
    }

    static synchronized void report(String name, String result, String why) {
        String escaped = why.replace("\\", "\\\\").replace("\"", "\\\"").replaceAll("[\\x00-\\x1f]", " ");
        System.out.println("{\"case\": \"" + name + "\", \"result\": \"" + result + "\", \"why\": \"" + escaped + "\"}");
        System.out.flush();
    }
}
