import { Link } from "wouter";
import type { NeedView } from "../../api/contract.ts";
import { Badge } from "../../parts/badge.tsx";
import { Held } from "../../parts/live.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { useHref } from "../../url.ts";

const words: Readonly<Record<NeedView["kind"], string>> = {
  process_not_ready: "Gateway not ready",
  configuration_differs: "Configuration differs",
  target_failing: "Target failing",
  target_out: "Target out",
  process_spool_filling: "Spool fills up",
  pool_oversold: "Pool oversold",
  target_throttled: "Target throttled",
  key_near_limit: "Key near its limit",
  key_expires: "Key expires",
  token_expires: "Token expires",
  key_rotating: "Rotation open",
  key_leaked: "Key leaked",
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
  {
    title: "What",
    cell: ({ kind, severity }) => <Badge tone={severity}>{words[kind]}</Badge>,
  },
  { title: "Where", cell: (need) => <Place need={need} /> },
  { title: "Why", cell: ({ what }) => what },
  { title: "When", cell: ({ at }) => <Time at={at} none="now" isRelative />, isWideOnly: true },
];

function Place({ need: { kind, subject } }: { readonly need: NeedView }) {
  const href = useHref();
  return <Link href={href(pathOf(kind, subject.id))}>{subject.name}</Link>;
}

function pathOf(kind: NeedView["kind"], id: string): string {
  switch (kind) {
    case "target_failing":
    case "target_out":
    case "target_throttled":
      return "/targets";
    case "pool_oversold":
      return "/pools";
    case "process_not_ready":
    case "process_spool_filling":
    case "configuration_differs":
      return "/gateways";
    case "key_rotating":
      return `/keys/${id}/rotate`;
    case "key_near_limit":
    case "key_expires":
    case "key_leaked":
      return `/keys/${id}`;
    case "token_expires":
      return "/access";
  }
}
