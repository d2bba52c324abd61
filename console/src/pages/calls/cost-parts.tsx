import type { CallDetail } from "../../api/contract.ts";
import { AppLink } from "../../parts/button.tsx";
import { usdText } from "../../parts/money.tsx";
import { exactText } from "../../parts/numbers.tsx";
import { type Column, Table } from "../../parts/table.tsx";

type Part = NonNullable<CallDetail["cost_parts"]>[number];

/** What each kind of tokens costs, by the price of the target that answered. */
export function CostParts({ call }: { readonly call: CallDetail }) {
  const { cost_parts: parts, price_version: version } = call;
  if (!parts?.length) {
    return <p>Units pay for it, or several targets did it, or it was cut by a crash.</p>;
  }
  return (
    <>
      <Table caption="Cost" columns={columns} rows={parts} idOf={({ item }) => item} />
      <p className="muted small">
        Of {call.target}. See{" "}
        <AppLink to="/prices" own={{ version: String(version ?? "") }}>
          the prices of version {version}
        </AppLink>
        .
      </p>
    </>
  );
}

const names: Readonly<Record<Part["item"], string>> = {
  input: "Fresh input",
  cache_read: "Cache read",
  cache_write: "Cache write",
  cache_write_1h: "Cache write for an hour",
  output: "Output",
  image: "Images",
};

const columns: readonly Column<Part>[] = [
  ["Part", ({ item }) => names[item]],
  ["Tokens", ({ tokens }) => exactText(tokens), "number"],
  ["For 1M", ({ usd_per_million: rate }) => `$${rate}`, "number"],
  ["Cost", ({ cost_usd: cost }) => usdText(Number(cost)), "number"],
];
