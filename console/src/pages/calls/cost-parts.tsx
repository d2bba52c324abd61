import type { CallDetail, TargetPriceView } from "../../api/contract.ts";
import { useRead } from "../../api/use-read.ts";
import { AppLink } from "../../parts/button.tsx";
import { usdText } from "../../parts/money.tsx";
import { exactText } from "../../parts/numbers.tsx";
import { Loaded } from "../../parts/page.tsx";
import { type Column, Table } from "../../parts/table.tsx";

interface Part {
  readonly name: string;
  readonly tokens: number;
  /** USD for 1M tokens. */
  readonly rate: string | null;
}

/** What each kind of tokens costs, by the price of the target that answered. */
export function CostParts({ call }: { readonly call: CallDetail }) {
  const version = call.price_version;
  const prices = useRead("/prices", { version: version ?? undefined });
  return (
    <Loaded query={prices}>
      {({ data }) => {
        const found = data.find(({ target }) => target === call.target);
        const rates = found?.price && ratesOf(found.price, call);
        if (!rates) return <p>Units pay for it, or the table has no price of it.</p>;
        const parts = partsOf(call, rates).filter(({ tokens }) => tokens > 0);
        return (
          <>
            <Table caption="Cost" columns={columns} rows={parts} idOf={({ name }) => name} />
            <p className="muted small">
              Of {call.target}
              {call.attempts > 1 && "; what other attempts were billed is in the cost, too"}. See{" "}
              <AppLink to="/prices" own={{ version: String(version ?? "") }}>
                the prices of version {version}
              </AppLink>
              .
            </p>
          </>
        );
      }}
    </Loaded>
  );
}

type Price = NonNullable<TargetPriceView["price"]>;
type Rates = Pick<Price, "input" | "output" | "cache_read" | "cache_write" | "cache_write_1h">;

/** Those of its tier, and of long prompts if it was one. */
function ratesOf(price: Price, call: CallDetail): Rates | undefined {
  const { service_tier: tier, input_tokens: input } = call;
  const isStandard = tier === null || tier === "default" || tier === "standard";
  const ofTier = isStandard ? price : price.tiers[tier];
  const long = ofTier?.long_prompt;
  return long && input > long.over_tokens ? long : ofTier;
}

function partsOf(call: CallDetail, rates: Rates): readonly Part[] {
  const { cache_write_tokens: written, cache_write_1h_tokens: hour } = call;
  const fresh = call.input_tokens - call.cached_input_tokens - written;
  return [
    { name: "Fresh input", tokens: fresh, rate: rates.input },
    { name: "Cache read", tokens: call.cached_input_tokens, rate: rates.cache_read },
    { name: "Cache write", tokens: written - hour, rate: rates.cache_write },
    { name: "Cache write for an hour", tokens: hour, rate: rates.cache_write_1h },
    { name: "Output", tokens: call.output_tokens, rate: rates.output },
  ];
}

const columns: readonly Column<Part>[] = [
  ["Part", ({ name }) => name],
  ["Tokens", ({ tokens }) => exactText(tokens), "number"],
  ["For 1M", ({ rate }) => (rate === null ? "none" : `$${rate}`), "number"],
  [
    "Cost",
    ({ tokens, rate }) =>
      rate === null ? "not priced" : usdText((tokens * Number(rate)) / 1_000_000),
    "number",
  ],
];
