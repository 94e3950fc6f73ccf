-- Rarely used functions: reconnects, loads of rows, histograms, options and commands of scripts, reports, finalizers.
-- `api.lua` loads this file when a script calls one of them. The file adds its methods of connections to the others, and
-- returns the other functions.

local api, ffi, connections, raise, DONE, no_rows, this, newproxy, set_metatable, metatable_of = ...

local seldom = {}

-- ------------------------------------------------------------------ histograms

local function let_go_histogram(histogram) api.histogram_let_go(this, histogram) end

local histograms = {}
function histograms:update(value) api.histogram_update(self, value) end
function histograms:print() api.histogram_print(self) end
ffi.metatype("sb_histogram_t", { __index = histograms, __tostring = function() return "<sb_histogram>" end })

function seldom.histogram(size, least, most)
   if type(size) ~= "number" or size < 1 or size > 1e6 then
      error("histogram.new: the size must be from 1 to 1000000, not " .. tostring(size), 2)
   end
   return ffi.gc(api.histogram_new(this, size, least, most), let_go_histogram)
end

-- ------------------------------------------------------------------ connections

function connections:reconnect()
   if api.reconnect(self) ~= DONE then raise(self, "<reconnect>") end
   return true
end

-- Each statement has one result here, so there is never another.
function connections:more_results() return false end
function connections:next_result() return no_rows end

function connections:check_error(result, sql)
   if result ~= nil or tonumber(self.error) == sysbench.sql.error.NONE then return result end
   raise(self, sql)
end

-- ------------------------------------------------------------------ loads of rows

function connections:bulk_insert_init(sql)
   if api.bulk_begin(self, sql, #sql) ~= DONE then raise(self, sql) end
   return true
end

function connections:bulk_insert_next(row)
   if api.bulk_add(self, row, #row) ~= DONE then raise(self, "<bulk insert>") end
   return true
end

-- An extension of sysbench: a row of two integers, "(1,2)", without a Lua string.
local bulk_add_numbers = api.bulk_add_numbers

function connections:bulk_insert_numbers(a, b)
   if bulk_add_numbers(self, a, b) ~= DONE then raise(self, "<bulk insert>") end
   return true
end

function connections:bulk_insert_done()
   if api.bulk_end(self) ~= DONE then raise(self, "<bulk insert>") end
   return true
end

-- An extension of sysbench: rows of one table, value by value, sent in the fastest way that the server supports. The
-- column names are separated by commas: "id,c". Between init and done, the connection accepts no other statement.
local load_int, load_text, load_string = api.load_int, api.load_text, api.load_string

function connections:load_rows_init(table, columns)
   if api.load_begin(self, table, #table, columns, #columns) ~= DONE then raise(self, "<load of rows>") end
end

function connections:load_rows_int(value)
   if load_int(self, value) ~= DONE then raise(self, "<load of rows>") end
end

function connections:load_rows_text(text)
   if load_text(self, text, #text) ~= DONE then raise(self, "<load of rows>") end
end

-- A text as from sysbench.rand.string, without a Lua string.
function connections:load_rows_string(format)
   if load_string(self, format, #format) ~= DONE then raise(self, "<load of rows>") end
end

function connections:load_rows_done()
   if api.load_end(self) ~= DONE then raise(self, "<load of rows>") end
end

-- ------------------------------------------------------------------ options of scripts

local function key(name) return (name:gsub("%-", "_")) end

-- Whether the script accepts a value for one of its options. The fourth part of an option's table can be a function that
-- checks it. As in sysbench, its arguments are C strings: the option's name, and the value or a null pointer.
function seldom.takes(name, value)
   for own, definition in pairs(sysbench.cmdline.options or {}) do
      local check = key(own) == key(name) and definition[4]
      if check then
         local answer = check(ffi.cast("const char *", name), ffi.cast("const char *", value))
         return answer ~= nil and answer ~= false and answer ~= 0
      end
   end
   return true
end

-- ------------------------------------------------------------------ commands of scripts

function seldom.command_defined(name)
   local commands = sysbench.cmdline.commands
   return type(commands) == "table" and commands[name] ~= nil and commands[name][1] ~= nil
end

function seldom.command_parallel(name)
   return sysbench.cmdline.command_defined(name)
      and sysbench.cmdline.commands[name][2] == sysbench.cmdline.PARALLEL_COMMAND
end

-- A script sets this text when all options are known.
function seldom.print_test_options() io.write(sysbench.cmdline.test_options or "") end

function seldom.call_command(name)
   if not sysbench.cmdline.command_defined(name) then return false end
   return sysbench.cmdline.commands[name][1]() ~= false
end

-- ------------------------------------------------------------------ reports

local function per_second(stat, what) return stat[what] / stat.time_interval end

local function rates(stat)
   return per_second(stat, "events"), (stat.reads + stat.writes + stat.other) / stat.time_interval,
      per_second(stat, "reads"), per_second(stat, "writes"), per_second(stat, "other")
end

function seldom.report_default(stat)
   local tps, qps, reads, writes, other = rates(stat)
   print(string.format(
      "[ %.0fs ] thds: %u tps: %4.2f qps: %4.2f (r/w/o: %4.2f/%4.2f/%4.2f) lat (ms,%s%%): %4.2f err/s %4.2f " ..
      "reconn/s: %4.2f",
      stat.time_total, stat.threads_running, tps, qps, reads, writes, other, sysbench.opt.percentile,
      stat.latency_pct * 1000, per_second(stat, "errors"), per_second(stat, "reconnects")))
end

function seldom.report_csv(stat)
   local tps, qps, reads, writes, other = rates(stat)
   print(string.format("%.0f,%u,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f",
      stat.time_total, stat.threads_running, tps, qps, reads, writes, other, stat.latency_pct * 1000,
      per_second(stat, "errors"), per_second(stat, "reconnects")))
end

local document, hook

-- Prints an array for each hook, as in sysbench.
function seldom.report_json(stat)
   if hook == sysbench.reporting then
      io.write(",\n")
   else
      if hook then io.write("\n]\n") end
      io.write("[\n")
      hook = sysbench.reporting
   end
   if not document then
      -- The interpreter collects it when it ends, which is after the last report.
      document = newproxy(true)
      getmetatable(document).__gc = function() io.write("\n]\n") end
   end
   local tps, qps, reads, writes, other = rates(stat)
   io.write(string.format([[
  {
    "time": %4.0f,
    "threads": %u,
    "tps": %4.2f,
    "qps": {
      "total": %4.2f,
      "reads": %4.2f,
      "writes": %4.2f,
      "other": %4.2f
    },
    "latency": %4.2f,
    "errors": %4.2f,
    "reconnects": %4.2f
  }]], stat.time_total, stat.threads_running, tps, qps, reads, writes, other, stat.latency_pct * 1000,
      per_second(stat, "errors"), per_second(stat, "reconnects")))
end

-- ------------------------------------------------------------------ finalizers

-- LuaJIT drops an error that leaves a `__gc`. In its version of January 2026, it also drops the topmost value of the
-- interrupted function, which then continues with a wrong value. The error is therefore caught here and reported. If the
-- error restarts an event, the connection's next call fails with it, too. Otherwise the current event would not notice that
-- its transaction may have been rolled back.
local function report(why)
   local is_table = type(why) == "table"
   if is_table and why.errcode == sysbench.error.RESTART_EVENT
      and why.connection ~= nil and ffi.istype("sql_connection *", why.connection) then
      api.fail_again(why.connection)
   end
   local words = "a function that is called at a collection failed: " .. tostring(is_table and why.sql_errmsg or why)
   api.alert(this, words, #words)
end

local function collect(finalizer, ...)
   local done, why = pcall(finalizer, ...)
   if not done then pcall(report, why) end
end

-- One guard for each function, by the function.
local guards = setmetatable({}, { __mode = "kv" })

local function guarded(finalizer)
   local kind = type(finalizer)
   -- C functions, such as `free`, raise no errors.
   if kind ~= "function" and kind ~= "table" and kind ~= "userdata" then return finalizer end
   local guard = guards[finalizer]
   if guard == nil then
      guard = function(...) collect(finalizer, ...) end
      -- A metatable that is set again already contains the guard.
      guards[finalizer], guards[guard] = guard, guard
   end
   return guard
end

local function guard_in(metatable)
   local finalizer = type(metatable) == "table" and rawget(metatable, "__gc")
   if finalizer then rawset(metatable, "__gc", guarded(finalizer)) end
end

function seldom.gc(made, finalizer) return ffi.gc(made, guarded(finalizer)) end

-- LuaJIT does not allow changes of the table after this call.
function seldom.metatype(kind, metatable)
   guard_in(metatable)
   return ffi.metatype(kind, metatable)
end

-- LuaJIT reads the `__gc` of a proxy's metatable directly, and scripts can replace it at any time. They therefore get another
-- table instead of the metatable. That table holds the script's `__gc`, which the collection calls; all other names refer to
-- the metatable. These two tables map each one to the other.
local metatables, shown = setmetatable({}, { __mode = "kv" }), setmetatable({}, { __mode = "kv" })

local function show(metatable)
   local own = {}
   metatables[own], shown[metatable] = metatable, own
   metatable.__metatable = own
   function metatable.__gc(...)
      local finalizer = rawget(own, "__gc")
      if finalizer ~= nil then collect(finalizer, ...) end
   end
   return setmetatable(own, {
      __index = function(_, name)
         -- Values that this file has set are hidden from the script.
         if name == "__gc" or name == "__metatable" and rawequal(metatable.__metatable, own) then return nil end
         return metatable[name]
      end,
      __newindex = function(_, name, value)
         if name == "__gc" then return rawset(own, name, value) end
         if name == "__metatable" and value == nil then value = own end
         metatable[name] = value
      end,
   })
end

function seldom.newproxy(kind)
   local made = newproxy(kind)
   if kind == true then show(metatable_of(made)) end
   return made
end

-- Any other metatable is used as it is. Only the `__gc` that it has at this call is guarded.
function seldom.setmetatable(value, metatable)
   local of_proxy = metatables[metatable]
   if of_proxy == nil and type(value) == "userdata" then guard_in(metatable) end
   return set_metatable(value, of_proxy or metatable)
end

function seldom.getmetatable(value)
   local metatable = metatable_of(value)
   return shown[metatable] or metatable
end

return seldom
