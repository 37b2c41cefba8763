-- The crowd: one purchase per token of a pool, in turn, and again from the start.
--
--   wrk -s crowd.lua URL -- POOL COUNT
--
-- Requests are built before the clock starts, so that building them is not
-- measured.  The last line of the output is for a script:
--   crowd REQUESTS MICROSECONDS P50_US P99_US REFUSED_BY_STATUS SOCKET_ERRORS

local requests, count, turn = {}, 0, 0

function init(args)
  local most = tonumber(args[2])
  local head = "POST " .. wrk.path .. " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n"
               .. "Authorization: Bearer "

  for token in io.lines(args[1]) do
    if count == most then
      break
    end
    count = count + 1
    requests[count] = head .. token .. "\r\n\r\n"
  end
end

function request()
  turn = turn < count and turn + 1 or 1
  return requests[turn]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format("crowd %d %d %d %d %d %d\n", summary.requests, summary.duration,
                         latency:percentile(50), latency:percentile(99), errors.status,
                         errors.connect + errors.read + errors.write + errors.timeout))
end
