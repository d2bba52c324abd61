import type { Prices, TargetPriceView } from "../../api/contract.ts";
import { useRead } from "../../api/use-read.ts";
import { Badge } from "../../parts/badge.tsx";
import { Empty } from "../../parts/error-note.tsx";
import { Select } from "../../parts/field.tsx";
import { exactText } from "../../parts/numbers.tsx";
import { Loaded, Page } from "../../parts/page.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { instantText } from "../../parts/time.tsx";
import { useUrl } from "../../url.ts";

/** What does a call cost, since when, says who? */
export function PricesPage() {
  const [{ version }, change] = useUrl({ version: "" });
  const prices = useRead("/prices", { version });
  return (
    <Page title="Prices" question="What does a call cost, since when, says who?">
      <Loaded query={prices}>
        {({ version: shown, versions, data }) => (
          <>
            <div className="row">
              <Select
                label="Version"
                isLabelHidden
                value={version}
                options={[
                  { value: "", label: "Prices in use" },
                  ...versions.map(({ version: number, valid_from: from }) => ({
                    value: String(number),
                    label: `Version ${number}, from ${instantText(from)}`,
                  })),
                ]}
                onChange={(chosen) => change({ version: chosen })}
              />
            </div>
            <p className="muted">
              USD for 1M tokens
              {shown !== null && `, of version ${shown} since ${sinceOf(shown, versions)}`}. A call
              keeps the version that applied when it arrived. The section <code>prices</code> of the
              configuration changes them. Calls of a target without a price have no cost.
            </p>
            {data.length === 0 ? (
              <Empty sentence="There is no target." command="sluice prices list" />
            ) : (
              <Table caption="Prices" columns={columns} rows={data} idOf={({ target }) => target} />
            )}
          </>
        )}
      </Loaded>
    </Page>
  );
}

function sinceOf(version: number, all: Prices["versions"]): string {
  const found = all.find((each) => each.version === version);
  return found === undefined ? "long ago" : instantText(found.valid_from);
}

type Price = NonNullable<TargetPriceView["price"]>;
type RateName = "input" | "output" | "cache_read" | "cache_write" | "cache_write_1h";

const rate = (name: RateName) => (row: TargetPriceView) => {
  if (row.price !== null) return rateText(row.price[name]);
  return name === "input" ? <Badge tone="warn">not priced</Badge> : null;
};

function rateText(usd: string | undefined) {
  return usd === undefined ? <span className="muted">none</span> : `$${usd}`;
}

const columns: readonly Column<TargetPriceView>[] = [
  [
    "Target",
    ({ target, models }) => (
      <>
        <strong>{target}</strong>
        <br />
        <span className="muted small">{models.join(", ") || "not configured"}</span>
      </>
    ),
  ],
  ["Input", rate("input"), "number"],
  ["Output", rate("output"), "number"],
  ["Cache read", rate("cache_read"), "wide number"],
  ["Cache write", rate("cache_write"), "wide number"],
  ["For an hour", rate("cache_write_1h"), "wide number"],
  ["Also", ({ price }) => price && <Others price={price} />, "wide"],
  ["Since", ({ since }) => since ?? <span className="muted">not known</span>, "wide"],
  ["Says who", (row) => <Source row={row} />],
];

/** Long prompts, images and other tiers. */
function Others({ price: { long_prompt: long, image, tiers } }: { readonly price: Price }) {
  const lines = [
    ...(long === undefined
      ? []
      : [`over ${exactText(long.over_tokens)} tokens: ${pairText(long)}`]),
    ...(image === undefined ? [] : [`an image: $${image}`]),
    ...Object.entries(tiers).map(([name, each]) => `${name}: ${pairText(each)}`),
  ];
  return (
    <ul className="plain-list small">
      {lines.map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
  );
}

function pairText({ input, output }: Pick<Price, "input" | "output">): string {
  return (
    [input, output].map((usd) => (usd === undefined ? "none" : `$${usd}`)).join(" in, ") + " out"
  );
}

function Source({ row: { source, confidence } }: { readonly row: TargetPriceView }) {
  if (source === null || confidence === null) return null;
  const isSure = confidence === "configured" || confidence === "high";
  return (
    <>
      {source} <Badge tone={isSure ? "ok" : "warn"}>{confidence}</Badge>
    </>
  );
}
