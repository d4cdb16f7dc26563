//! Reviews: of a list that a company ran in 2014, and of settings in use.

use super::*;
use crate::sysctl::Kernel;

/// What a company set on its front ends of 7.5 GiB, and three settings that it considered.
const TUNED_2014: &str = include_str!("tuned_2014.conf");

fn front_end() -> Machine {
    Machine { memory_bytes: Some(8_053_063_680), ..Machine::usual() }
}

fn text(reviewed: &[Reviewed]) -> String {
    let line = |one: &Reviewed| {
        let meant = one.judgement.meant.as_ref().map(|meant| format!(" [{meant}]"));
        format!(
            "{} = {}\n  {}: {}{}\n",
            one.name,
            one.spelt,
            one.judgement.effect.as_str(),
            one.judgement.why,
            meant.unwrap_or_default()
        )
    };
    reviewed.iter().map(line).collect()
}

#[test]
fn a_list_of_2014_is_judged_for_a_current_kernel() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/sysctl/review/tuned_2014.expected");
    let current = text(&of_file("tuned_2014.conf", TUNED_2014, &front_end()));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, &current).unwrap();
    }
    assert_eq!(current, std::fs::read_to_string(path).unwrap());
}

#[test]
fn its_dangers_slips_and_dead_lines_are_named() {
    let reviewed = of_file("tuned_2014.conf", TUNED_2014, &front_end());
    let of = |name: &str| reviewed.iter().find(|one| one.name.ends_with(name)).unwrap();
    let (rmem, wmem) = (of("tcp_rmem"), of("tcp_wmem"));
    assert_eq!(rmem.judgement.effect, Effect::Slip);
    assert_eq!(rmem.judgement.meant.as_deref(), Some("8192 87380 8388608"));
    assert_eq!(wmem.judgement.meant.as_deref(), Some("4096 65536 8388608"));
    assert_eq!(of("tcp_mem").judgement.effect, Effect::Harms);
    assert!(of("tcp_mem").spelt.contains("8,388,608 pages = 32 GiB"));
    assert_eq!(of("tcp_tw_recycle").judgement.effect, Effect::Dead);
    assert_eq!(of("tcp_max_tw_buckets").judgement.effect, Effect::Fine);
    assert!(of("tcp_fin_timeout").judgement.why.contains("does not shorten TIME_WAIT"));
    assert_eq!(of("tcp_no_metrics_save").judgement.effect, Effect::Fine);
    assert_eq!(of("somaxconn").judgement.effect, Effect::Helps);
    assert_eq!(of("slow_start_after_idle").judgement.effect, Effect::Helps);
}

/// On the kernel of its time the same lines meant something else.
#[test]
fn an_old_kernel_is_judged_as_what_it_is() {
    let old = Machine { kernel: Kernel(3, 2), ..front_end() };
    let reviewed = of_file("tuned_2014.conf", TUNED_2014, &old);
    let of = |name: &str| reviewed.iter().find(|one| one.name.ends_with(name)).unwrap();
    assert_eq!(of("tcp_tw_recycle").judgement.effect, Effect::Harms);
    assert_eq!(of("tcp_no_metrics_save").judgement.effect, Effect::Helps);
    assert_eq!(of("tcp_max_syn_backlog").judgement.effect, Effect::Doubtful);
    assert_eq!(of("somaxconn").default.as_deref(), Some("128"));
}

#[test]
fn names_values_and_repetitions_are_questioned() {
    let file = "net.core.somaxcon = 4096\nnet.ipv4.tcp_sack = 0\nnet.ipv4.tcp_sack = 1\n\
                net.ipv4.tcp_rmem = 4096 16384\nvm.swappiness = 10\nnet.ipv4.tcp_wmem\nnet.x.y = 1\n\
                net.ipv4.ip_local_port_range = 1024 65535\nnet.ipv4.tcp_fin_timeout = 60\n";
    let expected = "\
net.core.somaxcon = 4096
  slip: There is no net.core.somaxcon; net.core.somaxconn was probably meant. [net.core.somaxconn]
net.ipv4.tcp_sack = 0
  dead: Line 3 sets it again, and that one counts.
net.ipv4.tcp_sack = 1
  fine: The kernel's default.
net.ipv4.tcp_rmem = 4,096 bytes = 4 KiB; 16,384 bytes = 16 KiB
  harms: It takes 3 numbers; the kernel refuses `4096 16384`.
vm.swappiness = 10
  unknown: Not a network setting, so not judged.
net.ipv4.tcp_wmem = \n  harms: The line sets nothing: it has no value.
net.x.y = 1
  unknown: Not known here, so not judged.
net.ipv4.ip_local_port_range = 1,024 port; 65,535 port
  helps: 64,512 ephemeral ports per server; the default has 28,232. Programs that listen on a port in the range may find it in use: reserve it.
net.ipv4.tcp_fin_timeout = 60 s
  fine: The kernel's default.
";
    assert_eq!(text(&of_file("x", file, &Machine::usual())), expected);
}

#[test]
fn only_what_was_changed_is_told_of_those_in_use() {
    let mut settings = Settings::default();
    for (name, value) in [
        ("net.core.somaxconn", "4096"),
        ("net.ipv4.tcp_rmem", "4096\t131072\t33554432"),
        ("net.ipv4.tcp_mem", "187901\t253869\t375802"),
        ("net.ipv4.tcp_sack", "0"),
        ("net.ipv4.tcp_fin_timeout", "60"),
        ("net.ipv4.route.error_burst", "1250"),
    ] {
        settings.values.insert(name.to_owned(), value.to_owned());
    }
    let file = SysctlFile {
        path: "/etc/sysctl.d/1.conf".to_owned(),
        text: "net.ipv4.tcp_fin_timeout=60\nnet.ipv4.tcp_sack=0".to_owned(),
    };
    let machine = Machine { memory_bytes: Some(16 << 30), ..Machine::usual() };
    let all = in_use(&settings, std::slice::from_ref(&file), &machine, Which::All);
    assert!(
        all.len() > 1
            && all.iter().all(|one| Setting::by_name(&one.name).is_some() || one.set_by.is_some())
    );
    let reviewed = in_use(&settings, &[file], &machine, Which::Changed);
    assert!(reviewed.len() < all.len(), "{all:?}");
    let names: Vec<&str> = reviewed.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_sack"]);
    assert_eq!(reviewed[1].judgement.effect, Effect::Harms);
    assert_eq!(reviewed[1].set_by.as_ref().unwrap().line, 2);
}

/// Hostile text is read, whatever it holds.
#[test]
fn nonsense_is_survived() {
    let file = "=\n==\n-\n/=/\nnet.ipv4.tcp_rmem = 99999999999999999999 1 1\nnet.ipv4.tcp_mem = 18446744073709551615 18446744073709551615 18446744073709551615\nnet.ipv4.tcp_max_orphans=18446744073709551615\nnet.ipv4.ip_local_port_range = 0 18446744073709551615\n";
    assert_eq!(of_file("x", file, &front_end()).len(), 8);
}

#[test]
fn source_routes_are_judged_where_they_take_effect() {
    let file = "net.ipv4.conf.all.accept_source_route = 1\n\
                net.ipv4.conf.default.accept_source_route = 1\n";
    let reviewed = of_file("90.conf", file, &front_end());
    let effects: Vec<_> = reviewed.iter().map(|one| one.judgement.effect).collect();
    assert_eq!(effects, [Effect::Harms, Effect::Fine]);
}
