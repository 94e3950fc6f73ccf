-- What few interpreters are ever asked for: loads of rows, options and commands of scripts, reports, what is called at a
-- collection. `api.lua` loads it when the first of it is called. Methods of connections are put beside the others; what is
-- found elsewhere is returned.

local api, ffi, connections, raise, DONE, this, newproxy = ...

local seldom = {}

-- ------------------------------------------------------------------ loads of rows

function connections:bulk_insert_init(sql)
   if api.bulk_begin(self, sql, #sql) ~= DONE then raise(self, sql) end
   return true
end

function connections:bulk_insert_next(row)
   if api.bulk_add(self, row, #row) ~= DONE then raise(self, "<bulk insert>") end
   return true
end

function connections:bulk_insert_done()
   if api.bulk_end(self) ~= DONE then raise(self, "<bulk insert>") end
   return true
end

-- What sysbench has not: rows of one table, value by value, which go the fastest way that the server takes. The
-- columns are named with commas between them: "id,c". From init to done the connection takes nothing else.
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

-- A text drawn as sysbench.rand.string draws it, without a string of Lua.
function connections:load_rows_string(format)
   if load_string(self, format, #format) ~= DONE then raise(self, "<load of rows>") end
end

function connections:load_rows_done()
   if api.load_end(self) ~= DONE then raise(self, "<load of rows>") end
end

-- ------------------------------------------------------------------ options of scripts

local function key(name) return (name:gsub("%-", "_")) end

-- Whether the script takes a value for an option of its own: the fourth part of an option's table may be a function that
-- says so. As in sysbench it gets C strings, the option's name and the value; without a value that is a null pointer.
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

-- Set once all options are known.
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
      "[ %.0fs ] thds: %u tps: %4.2f qps: %4.2f (r/w/o: %4.2f/%4.2f/%4.2f) lat (ms,%u%%): %4.2f err/s %4.2f " ..
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

local document

function seldom.report_json(stat)
   if document then
      io.write(",\n")
   else
      io.write("[\n")
      -- Collected when the interpreter ends, and so after the last report.
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

-- ------------------------------------------------------------------ what is called at a collection

-- An error that gets out of a `__gc` is nobody's: LuaJIT drops it, and with it (in its version of January 2026) the topmost
-- value of whatever was interrupted, which then goes on with another. So it is told, and stays inside.
local function tell(why)
   if type(why) == "table" and why.sql_errmsg then why = why.sql_errmsg end
   local words = "a function that is called at a collection failed: " .. tostring(why)
   api.alert(this, words, #words)
end

-- By what they guard, so that no more are made than there are functions.
local guards = setmetatable({}, { __mode = "kv" })

local function guarded(finalizer)
   local kind = type(finalizer)
   -- C's functions, such as `free`, raise nothing.
   if kind ~= "function" and kind ~= "table" and kind ~= "userdata" then return finalizer end
   local guard = guards[finalizer]
   if guard == nil then
      guard = function(...)
         local done, why = pcall(finalizer, ...)
         if not done then pcall(tell, why) end
      end
      guards[finalizer] = guard
   end
   return guard
end

function seldom.gc(made, finalizer) return ffi.gc(made, guarded(finalizer)) end

function seldom.metatype(kind, metatable)
   if metatable.__gc ~= nil then metatable.__gc = guarded(metatable.__gc) end
   return ffi.metatype(kind, metatable)
end

local proxies = {
   __newindex = function(metatable, name, value)
      if name == "__gc" then value = guarded(value) end
      rawset(metatable, name, value)
   end,
}

function seldom.newproxy(kind)
   local made = newproxy(kind)
   if kind == true then setmetatable(getmetatable(made), proxies) end
   return made
end

return seldom
