"""What calls cost, by decimals: an independent reading of docs/money.md.

Reads lines of JSON (a price as in the configuration, what a call used, its tier) and writes the cost
of each in nano-USD, or "none" for a call that is not priced.
"""

import json
import sys
from decimal import ROUND_HALF_UP, Decimal, getcontext

getcontext().prec = 60
MILLION = Decimal(1_000_000)
NANO = Decimal("1e-9")


def rates_of(price, used, tier):
    if tier not in (None, "default", "standard"):
        if tier not in price.get("tiers", {}):
            return "free" if tier == "provisioned" else None
        price = price["tiers"][tier]
    long_prompt = price.get("long_prompt")
    if long_prompt is not None and used["input"] > long_prompt["over_tokens"]:
        return long_prompt
    return price


def cost_of(price, used, tier):
    rates = rates_of(price, used, tier)
    if rates is None:
        return "none"
    if rates == "free":
        return "0"
    kept = used["kept_1h"]
    amounts = {
        "input": used["input"] - used["read"] - used["written"],
        "cache_read": used["read"],
        "cache_write": used["written"] - kept,
        "cache_write_1h": kept,
        "output": used["output"],
    }
    total = Decimal(0)
    for name, tokens in amounts.items():
        if tokens == 0:
            continue
        if name not in rates:
            return "none"
        total += Decimal(tokens) * Decimal(rates[name]) / MILLION
    return str(int(total.quantize(NANO, rounding=ROUND_HALF_UP).scaleb(9)))


for line in sys.stdin:
    call = json.loads(line)
    print(cost_of(call["price"], call["used"], call["tier"]))
