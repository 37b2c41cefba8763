-- Many of something: a purchase per token, activities in turn or ids at random.
--
--   wrk -s scale.lua URL -- TOKENS SKIP COUNT FIRST IDS
--
-- Tokens from line SKIP + 1 on; after COUNT requests the crowd goes home, 0: it
-- stays for the whole time and begins again.  Of IDS ids from FIRST on, the next
-- one is asked for; with IDS negative one of -IDS, at random.  The last line of
-- the output is for a script:
--   crowd REQUESTS MICROSECONDS P50_US P99_US REFUSED_BY_STATUS SOCKET_ERRORS

local tokens, skip, count, first, ids
local lines
local turn = 0
local tail = " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nAuthorization: Bearer "

local function open()
  lines = io.lines(tokens)
  for _ = 1, skip do
    lines()
  end
end

function init(args)
  tokens, skip, count = args[1], tonumber(args[2]), tonumber(args[3])
  first, ids = tonumber(args[4]), tonumber(args[5])
  math.randomseed(os.time())
  open()
end

function request()
  local token = lines()
  local id

  if token == nil then
    open()
    token = lines()
  end
  turn = turn + 1
  if count > 0 and turn > count then
    wrk.thread:stop()
  end

  if ids < 0 then
    id = first + math.random(0, -ids - 1)
  else
    id = first + turn % ids
  end

  return string.format("POST %s/%d%s%s\r\n\r\n", wrk.path, id, tail, token)
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format("crowd %d %d %d %d %d %d\n", summary.requests, summary.duration,
                         latency:percentile(50), latency:percentile(99), errors.status,
                         errors.connect + errors.read + errors.write + errors.timeout))
end
