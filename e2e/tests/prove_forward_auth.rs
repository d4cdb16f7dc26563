//! A real authentication server, oauth2-proxy, decides about requests, with what its users know from nginx
//! and Traefik: a login page, a session cookie, the user's name in a field. Part of `make prove`;
//! `scripts/install-oauth2-proxy` builds it.

use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use e2e::http::{self, Connection};
use e2e::{App, OAUTH2_PROXY, Process, Scene, Weir, find, server_tables, wait};

const SOON: Duration = Duration::from_secs(20);

#[test]
#[ignore = "needs a program that only `make prove` builds"]
fn oauth2_proxy_lets_users_pass_after_they_log_in() {
    let Some(scene) = Scene::new("prove-forward-auth", &["python3", "htpasswd", OAUTH2_PROXY])
    else {
        return;
    };
    let made = Command::new("htpasswd").args(["-nbBC", "5", "ann", "a"]).output().unwrap();
    let users = scene.file("users", made.stdout).display().to_string();
    let (app, auth) = (App::start(&scene, 11, &[]), scene.address(12, 4180));
    let words = [
        format!("--http-address={auth}"),
        format!("--htpasswd-file={users}"),
        "--upstream=static://202".to_owned(),
        "--reverse-proxy=true".to_owned(),
        format!("--trusted-proxy-ip={}", scene.ip(1)),
        "--trusted-ip=10.99.99.99".to_owned(),
        "--set-xauthrequest=true".to_owned(),
        "--provider=github".to_owned(),
        "--client-id=x".to_owned(),
        "--client-secret=x".to_owned(),
        "--email-domain=*".to_owned(),
        "--cookie-secret=0123456789abcdef".to_owned(),
        "--cookie-secure=false".to_owned(),
    ];
    let _server = Process::start(&scene, "oauth2-proxy", &find(OAUTH2_PROXY).unwrap(), &words);
    wait::until("oauth2-proxy", SOON, || TcpStream::connect(auth).ok());
    let rest = format!(
        "[[route]]\npath = \"/oauth2\"\nservice = \"auth\"\n\
         [[route]]\npath = \"/page\"\nauthenticate = \"page\"\nservice = \"app\"\n\
         [[route]]\npath = \"/api\"\nauthenticate = \"api\"\nservice = \"app\"\n\
         [authentication.page.forward]\nservice = \"auth\"\npath = \"/\"\n\
         user_header = \"X-Auth-Request-User\"\nidentity_headers = [\"X-Auth-Request-Email\"]\n\
         [authentication.api.forward]\nservice = \"auth\"\npath = \"/oauth2/auth\"\n\
         user_header = \"X-Auth-Request-User\"\n\
         [service.app]\n{}[service.auth]\n{}",
        server_tables("app", [app.address()]),
        server_tables("auth", [auth]),
    );
    let weir = Weir::start(&scene, &scene.config("workers = 1", &rest));
    let ask = |path: &str, fields: &[&str]| http::get_with(weir.front(), path, fields).unwrap();

    let forged =
        ["X-Auth-Request-User: ann", "X-Forwarded-For: 10.99.99.99", "X-Real-IP: 10.99.99.99"];
    assert_eq!(ask("/api", &forged).status, 401);
    let seen = ask("/page", &forged);
    assert!(seen.status == 403 && seen.text().contains("/oauth2/sign_in"), "{}", seen.text());

    let form = b"username=ann&password=a&rd=%2Fpage";
    let kind = "Content-Type: application/x-www-form-urlencoded";
    let mut connection = Connection::open(weir.front()).unwrap();
    let seen = connection.request("POST", "/oauth2/sign_in", &[kind], form).unwrap();
    assert_eq!((seen.status, seen.field("location")), (302, Some("/page")), "{}", seen.head);
    let session = seen.field("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let session = format!("Cookie: {session}");
    for path in ["/api", "/page"] {
        let seen = ask(path, &[&session, forged[0]]);
        assert_eq!(seen.status, 200, "{}", seen.head);
        let fields = seen.json()["fields"].to_string().to_lowercase();
        assert_eq!(fields.matches("\"x-auth-request-user\"").count(), 1, "{fields}");
        assert!(fields.contains("[\"x-auth-request-user\",\"ann\"]"), "{fields}");
    }
    let user = || weir.access().iter().any(|line| line["path"] == "/page" && line["user"] == "ann");
    wait::until("the user in the access log", SOON, || user().then_some(()));
}
