"""The Lua script that makes wrk keep every latency, and say each second how many requests were made.

Source: wrk 4.1.0, SCRIPTING; ``script.c`` (script_stats_call, script_is_static); LuaJIT, "FFI Library".
"""

from __future__ import annotations

import json

from leadline.core.model.workload import Web
from leadline.formats.wrk.report import ERRORS, MARK

SECOND = "leadline-second"  # begins a line of a thread: the second since its first request, and requests in it

# `request` is called for every request, in the environment of its thread. `done` is called once, in another. The clock
# is Linux's CLOCK_MONOTONIC; without the library of LuaJIT that reads it, there are no lines of seconds.
_SCRIPT = """\
local has_ffi, ffi = pcall(require, "ffi")
if has_ffi then
    ffi.cdef[[
        typedef struct { long s; long ns; } leadline_time;
        int clock_gettime(int clock, leadline_time *time);
    ]]
    local now = ffi.new("leadline_time")
    local began, second, count = nil, 0, 0
    function request()
        ffi.C.clock_gettime(1, now)
        local elapsed = tonumber(now.s) + tonumber(now.ns) * 1e-9
        began = began or elapsed
        elapsed = math.floor(elapsed - began)
        if elapsed > second then
            io.stderr:write(string.format("SECOND %d %d\\n", second, count))
            second, count = elapsed, 0
        end
        count = count + 1
        return wrk.request()
    end
end

function done(summary, latency, requests)
    local file = assert(io.open("DOCUMENT", "w"))
    local function count(number)
        return string.format("%.0f", number)
    end
    file:write("ASKED")
    file:write(', "requests": ', count(summary.requests), ', "bytes": ', count(summary.bytes))
    file:write(', "duration_us": ', count(summary.duration), ', "errors": {')
    for index, name in ipairs({ERRORS}) do
        file:write(index > 1 and ", " or "", '"', name, '": ', count(summary.errors[name]))
    end
    file:write('}, "latencies_us": [')
    for index = 1, #latency do
        local value, times = latency(index)
        file:write(index > 1 and "," or "", "[", count(value), ",", count(times), "]")
    end
    file:write("]}\\n")
    file:close()
end
"""


def script_of(web: Web, url: str, document: str) -> str:
    """Return the script of a load, which writes ``document`` in the end: what was asked, and what came out."""
    asked = {MARK: 1, "url": url, "connections": web.connections, "threads": web.threads}
    plain = json.dumps(asked).removesuffix("}").encode()
    replaced = {
        "ASKED": "".join(f"\\{byte:03d}" for byte in plain),  # whatever stands in the URL, it is text for Lua
        "DOCUMENT": document,
        "SECOND": SECOND,
        "{ERRORS}": "{" + ", ".join(f'"{name}"' for name in ERRORS) + "}",
    }
    script = _SCRIPT
    for name, text in replaced.items():
        script = script.replace(name, text)
    return script
