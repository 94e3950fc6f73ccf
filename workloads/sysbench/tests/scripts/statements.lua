-- Runs every script's prepare, thread_init, events, thread_done and cleanup over the recording API,
-- for each driver, and prints the statements.
--
--   luajit statements.lua                    all scripts
--   luajit statements.lua --scripts DIR      other scripts with the same names
--   luajit statements.lua --only oltp_insert only cases whose name contains this text
--   luajit statements.lua --shared           without SQLite and options that only our scripts have
--   luajit statements.lua --summary          only the checks, without statements
--
-- With --shared, the texts of two directories are equal if SQL, values and their order are equal.
-- White space within SQL is normalised, and closing of statements is not printed.

local here = arg[0]:match("^(.*)/[^/]*$") or "."
package.path = here .. "/?.lua;" .. package.path
local api = require("api_recorder")

local settings = {scripts = here .. "/../../scripts", only = ""}
local flags = {summary = false, shared = false}
do
   local i = 1
   while arg[i] do
      local name = arg[i]:match("^%-%-(%a+)$")
      if flags[name] ~= nil then
         flags[name] = true
      else
         assert(settings[name], "statements.lua takes --scripts DIR, --only TEXT, --shared and --summary")
         i = i + 1
         settings[name] = assert(arg[i], "--" .. name .. " needs a value")
      end
      i = i + 1
   end
end

local DRIVERS = {"mysql", "pgsql", "sqlite"}
local OLTP = {"oltp_point_select", "oltp_read_only", "oltp_read_write", "oltp_write_only", "oltp_insert",
              "oltp_delete", "oltp_update_index", "oltp_update_non_index"}

-- name, script, options; `driver` restricts a case to one driver, and `extension` marks cases that only our scripts
-- support.
local cases = {}
local function case(fields)
   cases[#cases + 1] = fields
end

for _, script in ipairs(OLTP) do
   case {script = script, options = {tables = 3, table_size = 7}}
   case {script = script, options = {tables = 3, table_size = 7, auto_inc = false, threads = 2}, tid = 1}
   case {script = script, options = {table_size = 5, reconnect = 2}}
end
for _, script in ipairs({"oltp_read_only", "oltp_read_write", "oltp_write_only"}) do
   case {script = script, options = {table_size = 5, skip_trx = true}}
end
for _, script in ipairs({"oltp_read_only", "oltp_read_write"}) do
   case {script = script, options = {table_size = 5, range_selects = false, point_selects = 3}}
   case {script = script, options = {table_size = 50, range_size = 4, point_selects = 0, simple_ranges = 2,
                                     sum_ranges = 3, order_ranges = 0, distinct_ranges = 2}}
end
case {script = "oltp_write_only", options = {table_size = 5, index_updates = 2, non_index_updates = 3,
                                             delete_inserts = 4}}
case {script = "oltp_write_only", options = {table_size = 5, index_updates = 0, non_index_updates = 0,
                                             delete_inserts = 0}}
case {script = "oltp_read_write", options = {table_size = 5, create_secondary = false,
                                             create_table_options = "/* options */"}}
case {script = "oltp_read_write", driver = "mysql", options = {table_size = 5, secondary = true,
                                                               mysql_storage_engine = "myisam"}}
case {script = "oltp_read_write", driver = "pgsql", extension = true, options = {table_size = 5, secondary = true}}
case {script = "oltp_read_write", driver = "sqlite", extension = true,
      options = {table_size = 5, secondary = true, auto_inc = false}}
case {script = "oltp_read_write", driver = "pgsql", extension = true,
      options = {table_size = 5, pgsql_variant = "redshift"}}
case {script = "oltp_read_write", driver = "mysql", options = {tables = 3, table_size = 5, threads = 2},
      commands = {"warmup", "prewarm"}}
case {script = "select_random_points", options = {table_size = 90}}
case {script = "select_random_points", options = {table_size = 91, random_points = 3, threads = 4}, tid = 6}
case {script = "select_random_points", extension = true, options = {table_size = 9, reconnect = 2}}
case {script = "select_random_ranges", options = {table_size = 90}}
case {script = "select_random_ranges", options = {table_size = 91, number_of_ranges = 3, delta = 9, threads = 4},
      tid = 6}
case {script = "bulk_insert", options = {threads = 3}, tid = 2}

local function option_text(options)
   local names = {}
   for name in pairs(options) do
      names[#names + 1] = name
   end
   table.sort(names)
   for i, name in ipairs(names) do
      names[i] = "--" .. name .. "=" .. tostring(options[name])
   end
   return table.concat(names, " ")
end

-- Records the calls of one thread from prepare to cleanup.
local function record(fields, driver, recorder)
   local function state(command)
      return api.state {directory = settings.scripts, script = fields.script, command = command,
                        driver = driver, options = fields.options, tid = fields.tid, record = recorder}
   end

   for _, command in ipairs(fields.commands or {"prepare"}) do
      recorder("command", command)
      api.command(state(command), command)
   end

   local running = state("run")
   running.fail = fields.fail
   recorder("command", "run")
   if running.globals.init then
      running.globals.init()
   end
   if running.globals.thread_init then
      running.globals.thread_init(running.sysbench.tid)
   end
   for event = 1, fields.events or 4 do
      recorder("event", tostring(event))
      api.event(running)
   end
   if running.globals.thread_done then
      running.globals.thread_done(running.sysbench.tid)
   end

   recorder("command", "cleanup")
   api.command(state("cleanup"), "cleanup")
end

local function print_record(kind, text)
   print(("  %-9s %s"):format(kind, text))
end

local function title(fields, driver)
   return ("%s %s (%s, thread %d)"):format(fields.script, option_text(fields.options), driver, fields.tid or 0)
end

local function run_cases(print_line)
   for _, fields in ipairs(cases) do
      for _, driver in ipairs(DRIVERS) do
         local name = title(fields, driver)
         local left_out = flags.shared and (fields.extension or driver == "sqlite")
         if not left_out and (fields.driver or driver) == driver and name:find(settings.only, 1, true) then
            print_line("case", name)
            local done, problem = pcall(record, fields, driver, print_line)
            if not done then
               print_line("error", tostring(problem))
            end
         end
      end
   end
end

-- ----------------------------------------------------------------------------------------- checks

local checks = {}

-- Without this check, a failing case would appear only in the text.
function checks.every_case_runs()
   run_cases(function(kind, text)
      assert(kind ~= "error", text)
   end)
end

local MICRO_TESTS = {}
local function micro(options, command, driver, recorder)
   return api.state {directory = settings.scripts, script = "micro", command = command, driver = driver,
                     options = options, record = recorder}
end

function checks.every_micro_test_runs_on_every_driver()
   local listed = {}
   api.command(micro({}, "tests", "mysql", function(_, text) listed[#listed + 1] = text end), "tests")
   assert(#listed >= 40, "fewer tests than promised")
   for _, line in ipairs(listed) do
      local name = line:match("^(%S+)\t")
      assert(not MICRO_TESTS[name], "two tests of one name: " .. name)
      MICRO_TESTS[name] = true
      MICRO_TESTS[#MICRO_TESTS + 1] = name
      for _, driver in ipairs(DRIVERS) do
         local texts = {}
         local state = micro({tables = 2, table_size = 300, micro_test = name, reconnect = 2}, "run", driver,
                             function(kind, text) texts[#texts + 1] = text; texts[kind] = true end)
         state.globals.init()
         state.globals.thread_init(0)
         for _ = 1, 5 do
            local before = state.executed
            api.event(state)
            assert(state.executed > before, "an event without a statement: " .. name)
         end
         state.globals.thread_done(0)
         for _, text in ipairs(texts) do
            for word in text:gmatch("%f[%w_]%u+%f[^%w_]") do
               assert(not ({T = 1, N = 1, LIST = 1, HOT = 1, RANGES = 1, ROWS = 1})[word], "left as it was: " .. text)
            end
         end
      end
   end
end

function checks.the_docs_list_every_micro_test_with_its_sql()
   local file = assert(io.open(here .. "/../../../../docs/workloads/sysbench-scripts.md"))
   local page = file:read("*a")
   file:close()
   api.command(micro({}, "tests", "mysql", function(_, text)
      local name, sql = text:match("^(%S+)\t(.*)$")
      assert(page:find(("\n| `%s` | `%s` |"):format(name, sql), 1, true), "not in the docs as it is: " .. text)
   end), "tests")
end

function checks.a_misspelt_micro_test_is_refused_by_name()
   local done, problem = pcall(micro({micro_test = "pointpk"}, "run", "mysql", print_record).globals.init)
   assert(not done and problem:find("pointpk", 1, true), "accepted")
end

function checks.tables_of_more_rows_than_an_integer_counts_have_wide_columns()
   for driver, id in pairs {mysql = "BIGINT NOT NULL AUTO_INCREMENT", pgsql = "BIGSERIAL"} do
      local function created(options)
         local text
         local state = api.state {directory = settings.scripts, script = "oltp_common", command = "prepare",
                                  driver = driver, options = options, record = function(_, recorded)
            if recorded:match("CREATE TABLE") then
               text = recorded
               error("enough", 0)
            end
         end}
         pcall(api.command, state, "prepare")
         return assert(text, "no table")
      end
      local wide = created {table_size = 3e9}
      assert(wide:find("(id " .. id .. ", k BIGINT ", 1, true), wide)
      local loose = created {table_size = 3e9, auto_inc = false}
      assert(loose:find("(id BIGINT NOT NULL, k BIGINT ", 1, true), loose)
      assert(not created({table_size = 2147483647}):find("BIG"), "the largest table with integers")
   end
end

-- A run continues after the server dropped a client's connection within an event.
function checks.a_lost_connection_is_survived()
   for _, script in ipairs({"oltp_read_write", "oltp_point_select", "select_random_points", "micro"}) do
      local left = 2
      local state = api.state {directory = settings.scripts, script = script, command = "run", driver = "mysql",
                               options = {table_size = 200}, record = function() end}
      state.fail = function(sql)
         if left > 0 and sql:find("SELECT") then
            left = left - 1
            return true
         end
      end
      state.globals.thread_init(0)
      for _ = 1, 3 do
         api.event(state)
      end
      assert(left == 0, "no failure came")
      state.globals.thread_done(0)
   end
end

-- In SQLite, transactions that will write begin with BEGIN IMMEDIATE, and others do not.
function checks.transactions_of_sqlite_say_whether_they_write()
   for script, expected in pairs({oltp_read_only = "BEGIN", oltp_read_write = "BEGIN IMMEDIATE",
                                  oltp_write_only = "BEGIN IMMEDIATE"}) do
      for _, driver in ipairs(DRIVERS) do
         local begun
         local state = api.state {directory = settings.scripts, script = script, command = "run", driver = driver,
                                  options = {reconnect = 1}, record = function(kind, text)
                                     if kind == "execute" and text:find("^BEGIN") then
                                        begun = text
                                     end
                                  end}
         state.globals.thread_init(0)
         for _ = 1, 2 do -- the second one follows a reconnect
            api.event(state)
            assert(begun == (driver == "sqlite" and expected or "BEGIN"), script .. " begins with " .. begun)
         end
      end
   end
end

-- Scripts of other projects replace these functions after require("oltp_common"), and rely on the calls.
function checks.replaced_globals_are_called()
   local function expect(replaced, command, script)
      local state = api.state {directory = settings.scripts, script = script or "oltp_read_write", command = command,
                               driver = "mysql", options = {reconnect = 1, table_size = 2}, record = function() end}
      local called = false
      local original = assert(state.globals[replaced], "no global " .. replaced)
      state.globals[replaced] = function(...)
         called = true
         return original(...)
      end
      if command == "run" then
         state.globals.thread_init(0)
         api.event(state)
      else
         api.command(state, command)
      end
      assert(called, replaced .. " was replaced, and the original called")
   end

   for _, name in ipairs({"create_table", "get_c_value", "get_pad_value"}) do
      expect(name, "prepare")
   end
   expect("cmd_prepare", "prepare", "oltp_insert")
   for _, name in ipairs({"prepare_statements", "close_statements", "check_reconnect", "begin", "commit",
                          "prepare_begin", "prepare_commit", "prepare_for_each_table", "prepare_point_selects",
                          "prepare_simple_ranges", "prepare_sum_ranges", "prepare_order_ranges",
                          "prepare_distinct_ranges", "prepare_index_updates", "prepare_non_index_updates",
                          "prepare_delete_inserts", "execute_point_selects", "execute_simple_ranges",
                          "execute_sum_ranges", "execute_order_ranges", "execute_distinct_ranges",
                          "execute_index_updates", "execute_non_index_updates", "execute_delete_inserts"}) do
      expect(name, "run")
   end
end

-- The compiler is off, because it removes some allocations.
function checks.events_allocate_nothing()
   jit.off()
   local function measure(script, options)
      local state = api.state {directory = settings.scripts, script = script, command = "run", driver = "mysql",
                               options = options, record = function() end}
      state.globals.thread_init(0)
      state.quiet = true
      local event = state.globals.event
      collectgarbage()
      collectgarbage("stop")
      for _ = 1, 20 do -- the first events grow the stack
         event(0)
      end
      local before = collectgarbage("count")
      for _ = 1, 2000 do
         event(0)
      end
      local grown = (collectgarbage("count") - before) * 1024
      collectgarbage("restart")
      assert(grown < 2000,
             ("%s %s allocates %.0f bytes an event"):format(script, option_text(options), grown / 2000))
   end

   for _, script in ipairs(OLTP) do
      if script ~= "oltp_insert" then -- this script allocates the text of its statements
         measure(script, {tables = 2, table_size = 100})
      end
   end
   measure("select_random_points", {table_size = 100})
   measure("select_random_ranges", {table_size = 100})
   for _, name in ipairs(MICRO_TESTS) do
      measure("micro", {tables = 2, table_size = 300, micro_test = name})
   end
   jit.on()
end

if flags.summary then
   local order = {"every_case_runs", "every_micro_test_runs_on_every_driver",
                  "the_docs_list_every_micro_test_with_its_sql", "a_misspelt_micro_test_is_refused_by_name",
                  "a_lost_connection_is_survived", "transactions_of_sqlite_say_whether_they_write",
                  "replaced_globals_are_called", "events_allocate_nothing"}
   local failed = 0
   for _, name in ipairs(order) do
      local done, problem = xpcall(checks[name], debug.traceback)
      print((done and "ok      " or "FAILED  ") .. name:gsub("_", " "))
      if not done then
         failed = failed + 1
         print(problem)
      end
   end
   os.exit(failed == 0 and 0 or 1)
end
run_cases(print_record)
