//! What packages make of the command line, completion scripts and manual pages, and flags from the environment.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Command, Output};

fn weir(words: &[&str]) -> Command {
    let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
    weir.args(words);
    for name in ["WEIR_ADMIN", "WEIR_TOKEN_FILE", "WEIR_CONFIG"] {
        weir.env_remove(name);
    }
    weir
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns the names of all commands, as `weir --help` lists them.
fn commands() -> Vec<String> {
    let help = text(&weir(&["--help"]).output().unwrap().stdout);
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let list = list.split("\n\n").next().unwrap();
    let names = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

#[test]
fn bash_completes_commands_and_flags() {
    let complete = |words: &str| -> Vec<String> {
        let script = format!(
            "source <(\"$WEIR\" completions bash) && COMP_WORDS=({words}) && \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)) && \
             _weir weir \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\" && \
             printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let weir = env!("CARGO_BIN_EXE_weir");
        let Output { status, stdout, stderr } =
            Command::new("bash").args(["-c", &script]).env("WEIR", weir).output().unwrap();
        assert!(status.success(), "{}", text(&stderr));
        text(&stdout).lines().map(ToOwned::to_owned).collect()
    };
    assert_eq!(complete("weir re"), ["ready", "reload"]);
    assert_eq!(complete("weir status --adm"), ["--admin"]);
    assert_eq!(complete("weir bench lim"), ["limit"]);
}

#[test]
fn every_shell_gets_every_command() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = text(&weir(&["completions", shell]).output().unwrap().stdout);
        for command in commands() {
            assert!(script.contains(&command), "{shell} {command}");
        }
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = std::env::temp_dir().join(format!("weir-man-{}", std::process::id()));
    let written = weir(&["man", "--to", folder.to_str().unwrap()]).output().unwrap();
    assert!(written.status.success(), "{}", text(&written.stderr));
    let commands = commands();
    assert!(commands.len() > 15, "{commands:?}");
    for command in commands.iter().filter(|name| *name != "help") {
        let page = std::fs::read_to_string(folder.join(format!("weir-{command}.1"))).unwrap();
        assert!(page.contains(&format!(".TH weir-{command} 1")), "{page}");
        let printed = weir(&["man", command]).output().unwrap();
        assert_eq!(text(&printed.stdout), page);
    }
    assert!(folder.join("weir-bench-limit.1").exists());
    std::fs::remove_dir_all(&folder).unwrap();
    let none = weir(&["man", "bench", "nothing"]).output().unwrap();
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).contains("no command is named bench nothing"));
}

#[test]
fn a_first_file_is_written_and_not_overwritten() {
    let folder = std::env::temp_dir().join(format!("weir-init-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let run = |words: &[&str]| weir(words).current_dir(&folder).output().unwrap();
    let server = |address| ["init", "--server", address];
    assert_eq!(run(&server("10.0.1.5:8080")).status.code(), Some(0));
    let written = std::fs::read_to_string(folder.join("weir.toml")).unwrap();
    assert!(written.contains("10.0.1.5:8080"), "{written}");
    let checked = run(&["check", "weir.toml"]);
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
    let again = run(&server("10.0.1.6:8080"));
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("weir.toml exists; --force overwrites it"));
    assert_eq!(std::fs::read_to_string(folder.join("weir.toml")).unwrap(), written);
    assert_eq!(run(&["init", "--force", "--server", "10.0.1.6:8080"]).status.code(), Some(0));
    let wrong = run(&["init", "other.toml", "--server", "two words"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(!folder.join("other.toml").exists());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn flags_come_from_the_environment() {
    let nowhere = "127.0.0.1:1";
    let status = weir(&["status"]).env("WEIR_ADMIN", nowhere).output().unwrap();
    assert!(text(&status.stderr).contains(nowhere), "{}", text(&status.stderr));
    let status = weir(&["status", "--admin", "127.0.0.1:2"]).env("WEIR_ADMIN", nowhere).output();
    assert!(text(&status.unwrap().stderr).contains("127.0.0.1:2"));
    let check = weir(&["check"]).env("WEIR_CONFIG", "/nonexistent/weir.toml").output().unwrap();
    assert!(text(&check.stderr).contains("/nonexistent/weir.toml"), "{}", text(&check.stderr));
    // The variable is no reason to ask a balancer.
    let route = ["explain", "route", "http://a.example/", "--config", "/nonexistent"];
    for words in [&["explain", "queue_full"][..], &route] {
        let explained = weir(words).env("WEIR_ADMIN", nowhere).output().unwrap();
        let said = text(&explained.stderr);
        assert!(!said.contains(nowhere) && !said.contains("Usage"), "{said}");
    }
}
