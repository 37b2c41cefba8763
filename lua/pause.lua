-- Stop a sale whose live state is older than what is known of it: Redis lost data.
--
-- KEYS[1] activity, hash
-- ARGV[1] epoch, ARGV[2] seq: what was seen of this sale before
--
-- Returns { status, epoch, rev, seq }: what is there now; status is
--   fine     nothing is missing
--   paused   the epoch, or the seq of the epoch, fell behind: state is "paused"
--   stopped  it fell behind, and nothing is sold anyway (paused, closed, settled)
--   missing  there are no facts; the numbers are 0
-- Called again it changes nothing.  The caller raises rev of the control hash
-- after "paused".
--
-- Errors: "SECKILL ..." for bad arguments and damaged facts, and Redis' own.

local call = redis.call
local facts, epoch, seq = KEYS[1], ARGV[1], ARGV[2]

local function refuse(what)
  return redis.error_reply("SECKILL " .. what)
end

-- a decimal that a double holds exactly
local function number(text)
  if text and #text <= 15 and (text == "0" or string.find(text, "^[1-9]%d*$")) then
    return tonumber(text)
  end
end

if #KEYS ~= 1 or #ARGV ~= 2 or not (number(epoch) and number(seq)) then
  return refuse("pause takes a key, an epoch and a seq")
end

if call("EXISTS", facts) == 0 then
  return { "missing", 0, 0, 0 }
end

local fact = call("HMGET", facts, "state", "epoch", "rev", "seq")
local state, now_epoch, rev, now_seq = fact[1], number(fact[2]), number(fact[3]), number(fact[4])
if not (state and now_epoch and rev and now_seq) then
  return refuse("facts of the activity are missing or damaged")
end

local behind = now_epoch < number(epoch)
               or (now_epoch == number(epoch) and now_seq < number(seq))
if not behind then
  return { "fine", now_epoch, rev, now_seq }
end
if state ~= "open" then
  return { "stopped", now_epoch, rev, now_seq }
end

call("HSET", facts, "state", "paused", "rev", rev + 1)
return { "paused", now_epoch, rev + 1, now_seq }
