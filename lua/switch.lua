-- Open or close the entry, of one sale or of all.
--
-- KEYS[1] activity, hash, or control, hash
-- ARGV[1] "activity" or "control": what the key is   ARGV[2] "open" or "closed"
--
-- Returns { status, rev, state }: status is
--   switched   state was the other one; rev was raised, state is what was there before
--   unchanged  state is that already
--   refused    the sale is in a state that is no switch (paused, settled)
--   missing    there is no such hash; rev is 0, state is ""
-- Only a sale's own rev is raised here: raising that of the control hash, which
-- all nodes watch, is the caller's last step and does no harm twice.
--
-- Errors: "SECKILL ..." for bad arguments and damaged facts, and Redis' own.

local call = redis.call
local key, what, want = KEYS[1], ARGV[1], ARGV[2]

local function refuse(why)
  return redis.error_reply("SECKILL " .. why)
end

if #KEYS ~= 1 or #ARGV ~= 2 or not (what == "activity" or what == "control")
   or not (want == "open" or want == "closed")
then
  return refuse("switch takes a key, \"activity\" or \"control\", \"open\" or \"closed\"")
end

if call("EXISTS", key) == 0 then
  return { "missing", 0, "" }
end

local hash = call("HMGET", key, "state", "rev")
local state, rev = hash[1], hash[2]
if what == "control" then
  state = state or "open"
end
if not state or not rev or #rev > 15 or not string.find(rev, "^%d+$") then
  return refuse("state or rev of \"" .. key .. "\" is missing or damaged")
end
rev = tonumber(rev)

if not (state == "open" or state == "closed") then
  return { "refused", rev, state }
end
if state == want then
  return { "unchanged", rev, state }
end

if what == "control" then
  call("HSET", key, "state", want)
  return { "switched", rev, state }
end
call("HSET", key, "state", want, "rev", rev + 1)
return { "switched", rev + 1, state }
