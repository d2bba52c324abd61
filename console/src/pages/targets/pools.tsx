import type { KeyUseView, PoolView } from "../../api/contract.ts";
import { useLive } from "../../api/live.ts";
import { useRead } from "../../api/use-read.ts";
import { Badge } from "../../parts/badge.tsx";
import { Empty, Note } from "../../parts/error-note.tsx";
import { LiveMark } from "../../parts/live.tsx";
import { Count, LimitBar } from "../../parts/numbers.tsx";
import { Loaded, Page } from "../../parts/page.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { useSeesAll } from "../../shell/role.ts";

export function PoolsPage() {
  return useSeesAll() ? <AllPools /> : <OwnPools />;
}

/** What is sold, what is left? */
function AllPools() {
  const pools = useRead("/pools");
  const gates = useLive("gates");
  const inFlight: Column<PoolView> = {
    title: "In flight",
    isNumber: true,
    isWideOnly: true,
    cell: ({ name, max_in_flight: bound }) => (
      <span className="number">
        {gates?.get(`pool:${name}`)?.in_flight ?? 0}
        {bound !== null && ` of ${bound}`}
      </span>
    ),
  };
  return (
    <Page
      title="Pools"
      question="What is sold, and what is left?"
      actions={<LiveMark isKnown={gates !== undefined} />}
    >
      <Loaded query={pools}>
        {({ data }) => (
          <>
            {data
              .filter(({ status }) => status !== "ok")
              .map((pool) => (
                <Ill key={pool.name} pool={pool} />
              ))}
            {data.length === 0 ? (
              <Empty
                sentence="No pool is configured, so no throughput can be sold to keys."
                command="sluice pools list"
              />
            ) : (
              <Table
                caption="Pools"
                columns={[...poolColumns, inFlight]}
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

function Ill({ pool }: { readonly pool: PoolView }) {
  return (
    <Note tone="warn">
      <p>
        <span aria-hidden="true">▲ </span>
        {pool.status === "oversold"
          ? `${pool.sold_units} units of pool ${pool.name} are sold, but only ${pool.sellable_units} ` +
            "fit. Guarantees cannot all be kept: enlarge it in the configuration, or lower units of keys."
          : `Keys have ${pool.sold_units} units of pool ${pool.name}, which is not in the ` +
            "configuration. Configure it again, or move the keys to another pool."}
      </p>
    </Note>
  );
}

const tones = { ok: "ok", oversold: "bad", not_configured: "bad" } as const;
const states = { ok: "fits", oversold: "oversold", not_configured: "not configured" } as const;

const poolColumns: readonly Column<PoolView>[] = [
  {
    title: "Pool",
    cell: ({ name, models }) => (
      <>
        <strong>{name}</strong>
        <br />
        <span className="muted small">{models.map(({ alias }) => alias).join(", ")}</span>
      </>
    ),
  },
  {
    title: "Units sold",
    cell: ({ sold_units: sold, sellable_units: sellable, status }) => (
      <>
        <Count value={sold} /> of <Count value={sellable} />{" "}
        {status !== null && <Badge tone={tones[status]}>{states[status]}</Badge>}
      </>
    ),
  },
  { title: "Units left", isNumber: true, cell: (pool) => <Count value={pool.units_left} /> },
  {
    title: "One unit, tokens/min",
    isNumber: true,
    isWideOnly: true,
    cell: (pool) => <Count value={pool.unit_tokens_per_minute} />,
  },
  {
    title: "Held back, tokens/min",
    isNumber: true,
    isWideOnly: true,
    cell: ({ held_tokens_per_minute: held }) => (
      <Count value={held === null ? null : Math.ceil(held)} />
    ),
  },
  {
    title: "Capacity, tokens/min",
    isNumber: true,
    isWideOnly: true,
    cell: (pool) => <Count value={pool.tokens_per_minute} />,
  },
];

/** What of them is this account's? */
function OwnPools() {
  const pools = useRead("/pools");
  const keys = useLive("keys");
  const guaranteed = [...(keys?.values() ?? [])].filter(({ guarantee }) => guarantee !== null);
  return (
    <Page
      title="Pools"
      question="What throughput is guaranteed to your keys?"
      actions={<LiveMark isKnown={keys !== undefined} />}
    >
      <Loaded query={pools}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty sentence="Your keys have no guaranteed throughput. Ask the operator for units." />
          ) : (
            <>
              <Table
                caption="Your share of pools"
                columns={ownColumns}
                rows={data}
                idOf={({ name }) => name}
              />
              {guaranteed.length > 0 && <Guarantees keys={guaranteed} />}
            </>
          )
        }
      </Loaded>
    </Page>
  );
}

const ownColumns: readonly Column<PoolView>[] = [
  { title: "Pool", cell: ({ name }) => <strong>{name}</strong> },
  {
    title: "Your units",
    isNumber: true,
    cell: ({ sold_units: units }) => <Count value={units} />,
  },
  {
    title: "Guaranteed tokens a minute",
    isNumber: true,
    cell: ({ sold_tokens_per_minute: tokens }) => <Count value={tokens} />,
  },
  { title: "Models", cell: ({ models }) => models.map(({ alias }) => alias).join(", ") },
];

function Guarantees({ keys }: { readonly keys: readonly KeyUseView[] }) {
  return (
    <section className="stack tight" aria-label="Use of guarantees">
      <h2>What your keys use of it</h2>
      <div className="grid">
        {keys
          .toSorted((one, other) => one.key_id.localeCompare(other.key_id))
          .flatMap(({ key_id: id, application, guarantee }) =>
            guarantee === null ? (
              []
            ) : (
              <LimitBar
                key={id}
                name={`${application}: tokens in ${guarantee.seconds} s`}
                used={guarantee.used}
                limit={guarantee.limit}
                setBy={`the units of key ${id}`}
              />
            ),
          )}
      </div>
    </section>
  );
}
