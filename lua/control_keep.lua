-- The control hash: raise its rev, or make it anew.
--
-- KEYS[1] control, hash
-- ARGV[1] "raise" or "make"   ARGV[2] for "make": the key of the queue tokens, 64
--         hex digits   ARGV[3] for "raise": rev shall be this at least, or "0"
--
-- Returns { status, rev }: status is
--   raised   rev is larger than before
--   missing  it is not there, and "raise" never makes it: a node that finds it would
--            take a sale that Redis lost for one that has not begun
--   made     it was not there; rev is from the clock, above any that a node remembers
--   there    it was there; the key was added if it had none
-- Only who has given every lost sale its facts (lost.lua) may ask for "make".
--
-- Errors: "SECKILL ..." for bad arguments, and Redis' own.

local call, find = redis.call, string.find
local control, how, key, least = KEYS[1], ARGV[1], ARGV[2], ARGV[3]

if #KEYS ~= 1 or #ARGV ~= 3 or not (how == "raise" or how == "make")
   or not (find(least, "^%d+$") and #least <= 15)
   or (how == "make" and not (#key == 64 and find(key, "^%x+$"))) then
  return redis.error_reply("SECKILL control_keep takes a key, \"raise\" or \"make\", a token key and a rev")
end

local there = call("EXISTS", control) == 1

if how == "raise" then
  if not there then
    return { "missing", 0 }
  end
  local rev = call("HGET", control, "rev")
  rev = rev and #rev <= 15 and find(rev, "^%d+$") and tonumber(rev) or 0
  local by = math.max(tonumber(least) - rev, 1)
  return { "raised", call("HINCRBY", control, "rev", string.format("%d", by)) }
end

if there and call("HEXISTS", control, "rev") == 1 then
  call("HSETNX", control, "token_key", key)
  return { "there", 0 }
end

local time = call("TIME")
local rev = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
call("HSETNX", control, "token_key", key)
call("HSET", control, "rev", string.format("%d", rev))
return { "made", rev }
