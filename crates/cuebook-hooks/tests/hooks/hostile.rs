//! Whatever a script does to its worker, a call ends with an error or the right result, and no other call is harmed.

use std::time::{Duration, Instant};

use cuebook::error::Code;
use serde_json::json;

use crate::support::{Bench, hint};

/// Calls `pre_render` with this body; it must fail with this code and leave no worker behind.
#[track_caller]
fn dies(body: &str, code: Code) -> Option<String> {
    let bench = Bench::new(&format!("import os, sys\ndef pre_render(variables, context):\n    {body}\n"))?;
    // A call that hung would end with its time, and with another code.
    let error = bench.error();
    assert_eq!(error.code(), code, "{body}: {error}");
    assert_eq!(bench.hooks.idle_workers(), 0, "{body}");
    Some(error.diagnostic().message.clone())
}

#[test]
fn a_process_that_ends_is_an_error() {
    let message = |body| dies(body, Code::HookDied);
    let Some(exited) = message("os._exit(3)") else { return };
    assert_eq!(exited, "the process of `pre_render` of the prompt `p` exited with 3");
    assert!(message("os.abort()").is_some());
    assert_eq!(
        message("__import__('ctypes').string_at(0)").unwrap(),
        "the process of `pre_render` of the prompt `p` was killed by SIGSEGV"
    );
}

#[test]
fn closing_or_spoiling_the_channel_is_an_error() {
    let cases = [
        "os.close(4); return variables",
        "os.dup2(os.open('/dev/null', os.O_WRONLY), 4); return variables",
        "os.closerange(3, 100); return variables",
        "os.write(4, b'\\x07\\0\\0\\0rubbish'); return variables",
        "os.write(4, b'\\x02\\0\\0\\0{}'); return variables",
        "os.write(4, b'\\x0f\\0\\0\\0{\"id\":\"guess\"  }'); return variables",
        "os.write(4, b'\\x04\\0\\0\\0\\xff\\xff\\xff\\xff'); return variables",
        "os.dup2(os.open('/dev/null', os.O_WRONLY), 4); os._exit(0)",
    ];
    for body in cases {
        if dies(body, Code::HookDied).is_none() {
            return;
        }
    }
}

#[test]
fn an_announcement_of_too_much_is_refused_before_it_is_read() {
    let Some(message) =
        dies("os.write(4, b'\\xff\\xff\\xff\\x7f'); __import__('time').sleep(9)", Code::HookOutput)
    else {
        return;
    };
    assert!(message.contains("returned 2147483647 bytes"), "{message}");
}

#[test]
fn a_forged_reply_of_the_same_call_does_not_reach_the_next() {
    let Some(bench) = Bench::new(
        "import os
def pre_render(variables, context):
    inner = context['get_variable'].__globals__
    if 'first' in variables:
        data = b'{\"id\":\"%s\",\"values\":{\"forged\":1},\"kept\":[]}' % inner['call']['id'].encode()
        os.write(4, len(data).to_bytes(4, 'little') + data)
    return variables
",
    ) else {
        return;
    };
    // Its own result may be what it wants. The second reply is one too many, and the worker goes with it.
    let _ = bench.try_pre_render(json!({"first": 1}));
    assert_eq!(bench.pre_render(json!({"second": 2})), json!({"second": 2}));
}

#[test]
fn time_is_measured_by_us_and_ends_everything() {
    let Some(bench) = Bench::new(
        "import subprocess, sys, time
def pre_render(variables, context):
    print('began')
    sys.stdout.write('half a line')
    sys.stdout.flush()
    subprocess.Popen(['sleep', '1000'])
    time.sleep(1000)
",
    ) else {
        return;
    };
    let bench = bench.time(1500);
    let began = Instant::now();
    let error = bench.error();
    assert!(began.elapsed() < Duration::from_secs(20));
    assert_eq!(
        error.diagnostic().message,
        "`pre_render` of the prompt `p` took longer than 1.5 seconds and was stopped"
    );
    assert_eq!(hint(&error), "make it faster, or raise `max_execution_time` in `LIMITS` of prompt.py");
    assert_eq!(bench.printed(), "began\nhalf a line");
    assert_eq!(bench.hooks.idle_workers(), 0);
}

#[test]
fn loops_of_any_kind_end_with_the_time() {
    for body in [
        "while True: pass",
        "while True: print('x' * 1000)",
        "while True: context['get_variable']('x')",
        "import signal; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; os.kill(os.getpid(), 19); while_ = 1",
        "list(iter(int, 1))",
    ] {
        let text = format!("import os\ndef pre_render(variables, context):\n    {body}\n");
        let Some(bench) = Bench::new(&text) else { return };
        let error = bench.time(300).error();
        // One of them may meet the limit of memory first.
        assert!(
            matches!(error.code(), Code::HookTimeout | Code::HookReturn | Code::HookFailed),
            "{body}: {error}"
        );
    }
    let Some(bench) = Bench::new("import time\ntime.sleep(100)\n") else { return };
    assert_eq!(bench.time(300).error().code(), Code::HookTimeout);
}

#[test]
fn the_time_of_the_host_counts_too() {
    let Some(mut bench) = Bench::new(
        "def pre_render(variables, context):\n    for n in range(100): context['render_template']('x')\n    return variables\n",
    ) else {
        return;
    };
    bench.host.slowness = Duration::from_millis(50);
    assert_eq!(bench.time(300).error().code(), Code::HookTimeout);
}

#[test]
fn streams_that_are_replaced_or_closed_harm_no_later_call() {
    for (body, kept) in [
        ("import io; sys.stdout = io.StringIO(); print('lost')", 1),
        ("sys.stdout = None", 1),
        ("del sys.stdout", 0),
        ("sys.stdout.close()", 0),
        ("os.close(1)", 0),
        ("os.close(2)", 0),
    ] {
        let text = format!(
            "import os, sys\ndef pre_render(variables, context):\n    if 'spoil' in variables:\n        {body}\n    print('heard')\n    return variables\n"
        );
        let Some(bench) = Bench::new(&text) else { return };
        let _ = bench.try_pre_render(json!({"spoil": 1}));
        assert_eq!(bench.hooks.idle_workers(), kept, "{body}");
        bench.printed();
        assert_eq!(bench.pre_render(json!({"a": 1})), json!({"a": 1}), "{body}");
        assert_eq!(bench.printed(), "heard\n", "{body}");
    }
}

#[test]
fn a_thread_that_goes_on_costs_the_worker() {
    let Some(bench) = Bench::new(
        "import os, threading, time
COUNT = [0]
def pre_render(variables, context):
    COUNT[0] += 1
    threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
    variables['count'] = COUNT[0]
    return variables
",
    ) else {
        return;
    };
    for _ in 0..2 {
        assert_eq!(bench.pre_render(json!({})), json!({"count": 1}));
        let gone = (0..200).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            bench.hooks.idle_workers() == 0
        });
        assert!(gone);
    }
}

#[test]
fn children_that_go_on_are_ended_or_cost_the_worker() {
    let Some(bench) = Bench::new(
        "import os, subprocess
def pre_render(variables, context):
    subprocess.Popen(['sleep', '1000'])
    subprocess.Popen(['sh', '-c', 'sleep 1000 & exit'])
    return variables
def post_render(text, variables, context):
    if os.fork() == 0:
        # The child comes back as if it were the worker.
        return 'from the child'
    return text
def provide(context):
    return {'children': open(f'/proc/self/task/{os.getpid()}/children').read()}
",
    ) else {
        return;
    };
    assert_eq!(bench.pre_render(json!({})), json!({}));
    assert_eq!(bench.provide(), json!({"children": ""}));
    for _ in 0..5 {
        assert_eq!(bench.post_render("from the parent"), "from the parent");
    }
    assert_eq!(bench.provide(), json!({"children": ""}));
}

#[test]
fn descriptors_of_the_channel_are_not_given_to_children() {
    let Some(bench) = Bench::new(
        "import subprocess
def provide(context):
    found = subprocess.run(['ls', '/proc/self/fd'], close_fds=False, stdout=subprocess.PIPE, text=True).stdout.split()
    return {'found': [number for number in found if number in ('4', '5')]}
",
    ) else {
        return;
    };
    // `ls` itself opens the folder as 3.
    assert_eq!(bench.provide(), json!({"found": []}));
}

#[test]
fn memory_has_a_limit() {
    let Some(bench) = Bench::new("def pre_render(variables, context):\n    x = 'x' * (1 << 40)\n") else {
        return;
    };
    let error = bench.error();
    assert!(error.diagnostic().message.contains("raised MemoryError"), "{error}");
    assert!(hint(&error).contains("`memory` under `[hooks]`"));
    assert_eq!(bench.hooks.idle_workers(), 0);
}
