import type { NeedView } from "../../api/contract.ts";
import { Badge } from "../../parts/badge.tsx";
import { Held } from "../../parts/live.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { AppLink } from "../../parts/button.tsx";

type Kind = NeedView["kind"];

const toKey = (id: string): string => `/keys/${id}`;

/** What it is called, and where it is mended. */
const kinds: Readonly<Record<Kind, readonly [words: string, path: string | typeof toKey]>> = {
  process_not_ready: ["Gateway not ready", "/gateways"],
  process_degraded: ["Gateway degraded", "/gateways"],
  configuration_differs: ["Configuration differs", "/gateways"],
  target_failing: ["Target failing", "/targets"],
  target_out: ["Target out", "/targets"],
  process_spool_filling: ["Spool fills up", "/gateways"],
  pool_oversold: ["Pool oversold", "/pools"],
  target_throttled: ["Target throttled", "/targets"],
  budget_near_limit: ["Budget at its limit", "/budgets"],
  key_near_limit: ["Key near its limit", toKey],
  key_expires: ["Key expires", toKey],
  token_expires: ["Token expires", "/access"],
  key_rotating: ["Rotation open", (id) => `/keys/${id}/rotate`],
  key_leaked: ["Key leaked", toKey],
};

/** What needs the user, the worst first, each with a link to where it is mended. */
export function Needs({ needs }: { readonly needs: readonly NeedView[] }) {
  return (
    <Held rows={needs} idOf={idOf}>
      {(rows) => <Table caption="What needs you now" columns={columns} rows={rows} idOf={idOf} />}
    </Held>
  );
}

/** Several may be of the configuration, which has no id. */
function idOf({ kind, subject: { id }, what }: NeedView): string {
  return `${kind} ${id === "" ? what : id}`;
}

const columns: readonly Column<NeedView>[] = [
  ["What", ({ kind, severity }) => <Badge tone={severity}>{kinds[kind][0]}</Badge>],
  ["Where", (need) => <Place need={need} />],
  ["Why", ({ what }) => what],
  ["When", ({ at }) => <Time at={at} none="now" isRelative />, "wide"],
];

function Place({ need: { kind, subject } }: { readonly need: NeedView }) {
  const [, path] = kinds[kind];
  return <AppLink to={typeof path === "string" ? path : path(subject.id)}>{subject.name}</AppLink>;
}
