-- Take over what a consumer was given and has not handled.  Entries that were
-- deleted from the stream meanwhile leave a dead letter in the same step.
--
-- KEYS[1] orders, stream   KEYS[2] dead, stream
-- ARGV group, consumer, idle in milliseconds, cursor, count, error of the letters
--
-- Returns { next cursor, how many are taken over, { ids of the letters } }; a
-- fourth part, where there is one, tells why something stayed as it was.  The
-- cursor is "0-0" at the begin and at the end.
--
-- XAUTOCLAIM would do with one command, but Redis 7 takes a deleted entry off the
-- pending list before its letter can fail, and Redis 6.2 takes it over as if it
-- were there.  Here an entry is pending until its letter is written.
--
-- Errors: Redis' own, NOGROUP among them, before anything was changed.

local call, pcall = redis.call, redis.pcall
local orders, dead, group, consumer, idle, cursor, count, why =
  KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

local CHUNK = 1000  -- ids of one command

call("XLEN", dead)

local time = call("TIME")
local now_ms = string.format("%d", tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
local page = pcall("XPENDING", orders, group, "IDLE", idle, cursor == "0-0" and "-" or cursor, "+",
                   count)

-- as it is, for Redis 6.2 wraps what is thrown
if page.err then
  return page
end

local there, gone = {}, {}
for _, entry in ipairs(page) do
  local list = #call("XRANGE", orders, entry[1], entry[1]) > 0 and there or gone
  list[#list + 1] = entry[1]
end

local next_cursor = "0-0"
if #page > 0 and #page >= tonumber(count) then
  next_cursor = "(" .. page[#page][1]
end

-- from here on nothing throws: what fails stays pending, and comes again

local trouble
local function did(reply)
  if type(reply) == "table" and reply.err then
    trouble = trouble or reply.err
    return false
  end
  return true
end

local claimed, buried = 0, {}
for first = 1, #there, CHUNK do
  local command = { "XCLAIM", orders, group, consumer, idle }
  for i = first, math.min(first + CHUNK - 1, #there) do
    command[#command + 1] = there[i]
  end
  command[#command + 1] = "JUSTID"
  local taken = pcall(unpack(command))
  if did(taken) then
    claimed = claimed + #taken
  end
end

for _, id in ipairs(gone) do
  if did(pcall("XADD", dead, "*", "entry", id, "reason", "deleted", "attempts", "1", "first_error",
               why, "last_error", why, "first_ms", now_ms, "dead_ms", now_ms)) then
    buried[#buried + 1] = id
    did(pcall("XACK", orders, group, id))
  end
end

return { next_cursor, claimed, buried, trouble }
