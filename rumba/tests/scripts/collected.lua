-- A `__gc` that interrupts calls of the API. A collection can start at several places of a call. The tests interrupt the
-- call at each place in turn, where `__gc` sends statements over the same connection, binds, executes or fails. `prepare`
-- succeeds with any driver, or raises the first wrong result.

-- Compiled code has other places, in an unknown number. With `is_compiled`, LuaJIT compiles all code at once.
if is_compiled then require("jit.opt").start("hotloop=1", "hotexit=1") else jit.off() end

local driver, con

-- Does some work, and runs a `__gc` at one of the places where a collection can start: the first, the second, and so on.
-- Returns whether there are that many places.
local function interrupted(place, collected, work)
   local left, is_over, has_come = place, false, false
   local function leave()
      local proxy = newproxy(true)
      -- The last assignment counts.
      getmetatable(proxy).__gc = error
      getmetatable(proxy).__gc = function()
         if is_over then return end
         left = left - 1
         if left > 0 then return leave() end
         has_come = true
         collected()
      end
   end
   -- Each allocation is a place, and collects the garbage of earlier ones.
   collectgarbage("setpause", 1)
   collectgarbage("setstepmul", 0)
   collectgarbage()
   -- In a coroutine, so that no reference stays on the stack.
   coroutine.wrap(leave)()
   work()
   is_over = true
   collectgarbage("setpause", 200)
   collectgarbage("setstepmul", 200)
   collectgarbage()
   return has_come
end

local function nothing() end

-- Interrupts the work at every place. `before` and `after` are not interrupted.
local function at_every_place(collected, work, before, after)
   before, after = before or nothing, after or nothing
   local place = 0
   repeat
      place = place + 1
      local wrong
      before()
      local has_come = interrupted(place, function()
         local done, why = pcall(collected)
         if not done then wrong = why end
      end, work)
      assert(wrong == nil, wrong)
      after()
   until not has_come
   assert(is_compiled or place > 3, "only " .. place .. " places")
end

local function select_of(values) return "SELECT '" .. table.concat(values, "', '") .. "'" end

-- The row of the other statement is longer and has more columns, so it fills more of a connection's buffers.
local mine, other = { "one", ("two"):rep(50), "three", "four" }, {}
for column = 1, 30 do other[column] = ("other %d "):format(column):rep(20) end
local select_mine, select_other = select_of(mine), select_of(other)

local function is_mine(row)
   for column = 1, #mine + 1 do
      if row[column] ~= mine[column] then error("column " .. column .. " is " .. tostring(row[column])) end
   end
end

local function queries_other() assert(con:query_row(select_other) == other[1]) end

-- The other statement may discard a row that was not fetched yet, but a fetched row never mixes two results.
local function rows_are_whole()
   local is_fetching, was_fetching, whole = false, false, 0
   at_every_place(function()
      was_fetching = is_fetching
      queries_other()
   end, function()
      was_fetching = false
      local result = con:query(select_mine)
      is_fetching = true
      local row = result:fetch_row()
      is_fetching = false
      if row ~= nil then
         is_mine(row)
         if was_fetching then whole = whole + 1 end
      end
   end)
   assert(is_compiled or whole > 3, "only " .. whole .. " interrupted fetches returned a row")
   at_every_place(queries_other, function()
      local row = { con:query_row(select_mine) }
      -- Compiled code can be interrupted between the statement and its row. The row is then lost.
      if not is_compiled or row[1] ~= nil then is_mine(row) end
   end)
end

-- All parts of a reported error belong to the same failed statement.
local function errors_are_whole()
   local function fails(sql)
      local done, why = pcall(con.query, con, sql)
      assert(not done and type(why) == "string", type(why))
      return why
   end
   -- Their error numbers differ, too.
   local first, second = "SELEC", "INSERT INTO words VALUES (NULL)"
   local of_first, of_second = fails(first), fails(second)
   assert(of_first ~= of_second)
   at_every_place(function() assert(fails(second) == of_second) end, function()
      local why = fails(first)
      assert(why == of_first or why == of_second, why)
   end)
   at_every_place(queries_other, function() assert(fails(first) == of_first) end)
end

local FIND = "SELECT word FROM words WHERE word = ?"

local function parameter_of(statement, word)
   local parameter = statement:bind_create(sysbench.sql.type.VARCHAR, 20)
   parameter:set(word)
   return parameter
end

local function bound(connection, word)
   local statement = connection:prepare(FIND)
   statement:bind_param(parameter_of(statement, word))
   return statement
end

-- Allocates parameters, which reuse the memory of those that were collected.
local function make_others(statement)
   for _ = 1, 200 do parameter_of(statement, "nowhere") end
end

local function finds(statement, word)
   local row = statement:execute():fetch_row()
   assert(row ~= nil and row[1] == word, "not found: " .. word)
end

-- Bound parameters live as long as their statement.
local function bound_values_stay()
   local own, ours, theirs
   at_every_place(function() theirs = bound(own, "other") end, function() ours = bound(own, "mine") end, function()
      own, ours, theirs = driver:connect(), nil, nil
   end, function()
      make_others(ours)
      finds(ours, "mine")
      if theirs then finds(theirs, "other") end
   end)
   at_every_place(function() ours:bind_param(parameter_of(ours, "other")) end, function()
      ours:bind_param(parameter_of(ours, "mine"))
   end, function() ours = own:prepare(FIND) end, function()
      make_others(ours)
      local row = ours:execute():fetch_row()
      assert(row ~= nil and (row[1] == "mine" or row[1] == "other"), "bound to a freed parameter")
   end)
   at_every_place(function()
      make_others(ours)
      -- A closed statement raises an error.
      local done, result = pcall(ours.execute, ours)
      if done then
         local row = result:fetch_row()
         assert(row ~= nil and row[1] == "mine", "closed and not found")
      end
   end, function() ours:close() end, function() ours = bound(own, "mine") end)
   -- Rows that are stored in the server's format are decoded when they are fetched.
   ours = bound(con, "mine")
   at_every_place(queries_other, function()
      local row = ours:execute():fetch_row()
      assert(row == nil or row[1] == "mine", row and row[1])
   end)
end

-- An error of a `__gc` is reported, and does not change the call that it interrupted.
local function errors_of_a_collection_stay_inside()
   local place = 0
   repeat
      place = place + 1
      local row
      local has_come = interrupted(place, function() error("no") end, function()
         row = con:query(select_mine):fetch_row()
      end)
      is_mine(row)
   until not has_come
   coroutine.wrap(function()
      ffi.gc(ffi.new("int[1]"), function() con:query("SELEC") end)
      debug.setmetatable(newproxy(), { __gc = function() error("not by debug either") end })
   end)()
   collectgarbage()
   collectgarbage()
end

function prepare()
   driver = sysbench.sql.driver()
   con = driver:connect()
   con:query("CREATE TABLE words (word VARCHAR(20) NOT NULL)")
   con:query("INSERT INTO words VALUES ('mine'), ('other')")
   rows_are_whole()
   errors_are_whole()
   bound_values_stay()
   errors_of_a_collection_stay_inside()
   -- A closing interpreter collects C objects first, and then this proxy. The memory of a histogram of this length is
   -- unmapped when it is freed.
   local histogram = sysbench.histogram.new(1e6, 1, 1000)
   late = newproxy(true)
   getmetatable(late).__gc = function() histogram:update(10) end
   print("it went through")
end

function event() end
