import type { PoolView } from "../../api/contract.ts";
import { useLive } from "../../api/live.ts";
import { useRead } from "../../api/use-read.ts";
import { Badge } from "../../parts/badge.tsx";
import { Empty, Note } from "../../parts/error-note.tsx";
import { LiveMark } from "../../parts/live.tsx";
import { Count } from "../../parts/numbers.tsx";
import { Loaded, Page } from "../../parts/page.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { useSeesAll } from "../../shell/role.ts";

/** What is sold, what is left? Of an account: what of them is its own? */
export function PoolsPage() {
  const ofAll = useSeesAll();
  const pools = useRead("/pools");
  const gates = useLive(ofAll ? "gates" : undefined);
  const inFlight: Column<PoolView> = [
    "In flight",
    ({ name, max_in_flight: bound }) => (
      <span className="number">
        {gates?.get(`pool:${name}`)?.in_flight ?? 0}
        {bound !== null && ` of ${bound}`}
      </span>
    ),
    "wide number",
  ];
  const empty = ofAll ? (
    <Empty
      sentence="No pool is configured, so no throughput can be sold to keys."
      command="sluice pools list"
    />
  ) : (
    <Empty sentence="Your keys have no guaranteed throughput. Ask the operator for units." />
  );
  return (
    <Page
      title="Pools"
      question={
        ofAll ? "What is sold, and what is left?" : "What throughput is guaranteed to your keys?"
      }
      actions={ofAll && <LiveMark isKnown={gates !== undefined} />}
    >
      <Loaded query={pools}>
        {({ data }) => (
          <>
            {data.map((pool) => isIll(pool) && <Ill key={pool.name} pool={pool} />)}
            {data.length === 0 ? (
              empty
            ) : (
              <Table
                caption={ofAll ? "Pools" : "Your share of pools"}
                columns={ofAll ? [...poolColumns, inFlight] : ownColumns}
                rows={data}
                idOf={({ name }) => name}
              />
            )}
          </>
        )}
      </Loaded>
    </Page>
  );
}

/** Only who sees all accounts is told. */
function isIll({ status }: PoolView): boolean {
  return status !== null && status !== "ok";
}

function Ill({ pool }: { readonly pool: PoolView }) {
  return (
    <Note tone="warn">
      {pool.status === "oversold"
        ? `${pool.sold_units} units of pool ${pool.name} are sold, but only ${pool.sellable_units} ` +
          "fit. Guarantees cannot all be kept: enlarge it in the configuration, or lower units of keys."
        : `Keys have ${pool.sold_units} units of pool ${pool.name}, which is not in the ` +
          "configuration. Configure it again, or move the keys to another pool."}
    </Note>
  );
}

const tones = { ok: "ok", oversold: "bad", not_configured: "bad" } as const;
const states = { ok: "fits", oversold: "oversold", not_configured: "not configured" } as const;

const poolColumns: readonly Column<PoolView>[] = [
  [
    "Pool",
    ({ name, models }) => (
      <>
        <strong>{name}</strong>
        <br />
        <span className="muted small">{models.map(({ alias }) => alias).join(", ")}</span>
      </>
    ),
  ],
  [
    "Units sold",
    ({ sold_units: sold, sellable_units: sellable, status }) => (
      <>
        <Count value={sold} /> of <Count value={sellable} />{" "}
        {status !== null && <Badge tone={tones[status]}>{states[status]}</Badge>}
      </>
    ),
  ],
  ["Units left", (pool) => <Count value={pool.units_left} />, "number"],
  ["One unit, tokens/min", (pool) => <Count value={pool.unit_tokens_per_minute} />, "wide number"],
  [
    "Held back, tokens/min",
    ({ held_tokens_per_minute: held }) => <Count value={held === null ? null : Math.ceil(held)} />,
    "wide number",
  ],
  ["Capacity, tokens/min", (pool) => <Count value={pool.tokens_per_minute} />, "wide number"],
];

const ownColumns: readonly Column<PoolView>[] = [
  ["Pool", ({ name }) => <strong>{name}</strong>],
  ["Your units", ({ sold_units: units }) => <Count value={units} />, "number"],
  [
    "Guaranteed tokens a minute",
    ({ sold_tokens_per_minute: tokens }) => <Count value={tokens} />,
    "number",
  ],
  ["Models", ({ models }) => models.map(({ alias }) => alias).join(", ")],
];
