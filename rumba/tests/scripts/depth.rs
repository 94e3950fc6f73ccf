//! Functions that call themselves through a C function, each time with 9 KB of the C stack.

use rumba_workload_sysbench::setup::OptionValue;

use super::Run;

const NESTED: &str = "
    local function nested(depth)
        if depth == 0 then return 'x' end
        return (('a'):gsub('a', function() return nested(depth - 1) end))
    end
    function goes_to(depth) assert(nested(depth) == 'x') end
    function ends()
        local done, why = pcall(nested, 1000000)
        assert(not done and why:find('test.lua:4: stack overflow', 1, true), why)
    end
";

/// Guards against a crash: on a fiber, 30 nested calls ended the program with SIGSEGV and without a message.
#[test]
fn deep_recursion_fails_with_the_message_of_lua() {
    let run = Run::new();
    let event = format!("{NESTED} function event() goes_to(150) ends() goes_to(150) end");
    let (end, pace, _) = run.events(&event, 2);
    end.unwrap();
    assert_eq!(pace.ops, 2);
    let (end, ..) = run.events(&format!("{NESTED} function event() nested(1000000) end"), 1);
    let words = end.unwrap_err().to_string();
    assert_eq!(words, "script: `thread_run' function failed: test.lua:4: stack overflow");
    // While it is loaded and in `prepare`, the script runs on the thread's stack.
    run.load(&format!("{NESTED} goes_to(100) ends() goes_to(100)")).unwrap();
}

#[test]
fn client_thread_has_the_requested_stack_size() {
    let mut run = Run::new();
    run.options.push(("thread_stack_size".to_owned(), OptionValue::Number(f64::from(32 << 20))));
    let (end, ..) = run.events(&format!("{NESTED} function event() goes_to(2000) ends() end"), 1);
    end.unwrap();
    // In all other respects it is unchanged.
    let words = |script: &str| run.load(script).map(drop).unwrap_err().to_string();
    assert_eq!(words("string.gsub('a')"), "test.lua:1: bad argument #2 to 'gsub' (string expected, got no value)");
    run.load("assert(('abc'):gsub('%w', { a = 'b' }) == 'bbc' and select(2, ('aaa'):gsub('a', 'b', 2)) == 2)").unwrap();
}
