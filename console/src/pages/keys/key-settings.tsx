import type { KeyChange, KeyView, Pools } from "../../api/contract.ts";
import { read } from "../../api/client.ts";
import { useChange } from "../../api/use-change.ts";
import { useCache, useRead } from "../../api/use-read.ts";
import { EditDialog } from "../../parts/edit-dialog.tsx";
import { Field, Select } from "../../parts/field.tsx";
import { useRole } from "../../shell/role.ts";
import { LimitFields, limitsOf } from "./create-key.tsx";
import { PlanSelect, useOfferedPlans } from "./plan-select.tsx";

/** The fields as they are typed. */
interface Draft {
  readonly name: string;
  readonly note: string;
  readonly plan: string;
  readonly requests: string;
  readonly tokens: string;
  readonly units: string;
  readonly pool: string;
  readonly models: string;
  readonly networks: string;
  readonly expires: string;
}

const labels: Readonly<Record<keyof Draft, string>> = {
  name: "Name",
  note: "Note",
  plan: "Plan",
  requests: "Requests per minute",
  tokens: "Tokens per minute",
  units: "Provisioned units",
  pool: "Pool of the units",
  models: "Models",
  networks: "Networks",
  expires: "Expires",
};

/** Changes settings. */
export function KeySettings({
  view,
  onClose,
}: {
  readonly view: KeyView;
  readonly onClose: () => void;
}) {
  const { id } = view;
  const isOperator = useRole() === "operator";
  const offered = useOfferedPlans(view.account_id, view.plan);
  const cache = useCache();
  const change = useChange("PATCH /keys/{id}");
  const isCustom = ({ plan }: Draft): boolean =>
    offered.plans?.find(({ name }) => name === plan)?.tokens_per_minute === null;
  return (
    <EditDialog
      title="Change the key"
      labels={labels}
      view={view}
      draftOf={draftOf}
      bodyOf={(draft, before) => changeOf(before, draft, isCustom(draft))}
      change={change}
      id={id}
      read={() => read("/keys/{id}", { id })}
      onRead={(newer) => cache.writeKey(newer)}
      onClose={onClose}
    >
      {(draft, set) => (
        <>
          <Field
            label={labels.name}
            name="name"
            value={draft.name}
            onChange={(name) => set({ name })}
          />
          <PlanSelect offered={offered} value={draft.plan} onChange={(plan) => set({ plan })} />
          {isCustom(draft) && isOperator && (
            <LimitFields limits={draft} onChange={(limits) => set(limits)} />
          )}
          {isOperator && <Units draft={draft} onChange={set} />}
          <Access draft={draft} onChange={set} />
          <Field
            label={labels.note}
            name="note"
            rows={2}
            value={draft.note}
            onChange={(note) => set({ note })}
          />
        </>
      )}
    </EditDialog>
  );
}

interface PartProps {
  readonly draft: Draft;
  readonly onChange: (changed: Partial<Draft>) => void;
}

/** Provisioned throughput; there must be a pool to sell it from. */
function Units({ draft, onChange }: PartProps) {
  const pools = useRead("/pools").data?.data ?? [];
  if (pools.length === 0) return null;
  const none = { value: "", label: "none" };
  return (
    <>
      <Field
        label={labels.units}
        name="provisioned_units"
        type="number"
        min={0}
        value={draft.units}
        onChange={(units) => onChange({ units })}
        hint="What they guarantee is above the plan's limits. Only some plans have them."
      />
      <Select
        label={labels.pool}
        name="provisioned_pool"
        value={draft.pool}
        options={[none, ...pools.map((pool) => ({ value: pool.name, label: poolText(pool) }))]}
        onChange={(pool) => onChange({ pool })}
      />
    </>
  );
}

function poolText({ name, units_left: left }: Pools["data"][number]): string {
  return left === null ? name : `${name} (${left} units left)`;
}

/** What the key may be used for, from where, and until when. */
function Access({ draft, onChange }: PartProps) {
  return (
    <>
      <Field
        label={labels.models}
        name="allowed_models"
        rows={3}
        value={draft.models}
        onChange={(models) => onChange({ models })}
        hint="The only aliases that it may use, one a line. Empty: all of the environment."
      />
      <Field
        label={labels.networks}
        name="allowed_networks"
        rows={3}
        value={draft.networks}
        onChange={(networks) => onChange({ networks })}
        hint="Addresses and blocks such as 10.0.0.0/8, one a line. Empty: any."
      />
      <Field
        label={labels.expires}
        name="expires_at"
        type="datetime-local"
        value={draft.expires}
        onChange={(expires) => onChange({ expires })}
        hint="In your time zone. Empty: never."
      />
    </>
  );
}

function draftOf(view: KeyView): Draft {
  return {
    name: view.name,
    note: view.note,
    plan: view.plan,
    requests: String(view.limits?.requests_per_minute ?? ""),
    tokens: String(view.limits?.tokens_per_minute ?? ""),
    units: String(view.provisioned_units),
    pool: view.provisioned_pool ?? "",
    models: view.allowed_models?.join("\n") ?? "",
    networks: view.allowed_networks?.join("\n") ?? "",
    expires: view.expires_at === null ? "" : localText(view.expires_at),
  };
}

/** Only what differs is sent, so that a holder does not send what only operators may set. */
function changeOf(before: Draft, draft: Draft, isCustom: boolean): Partial<KeyChange> {
  const differs = (...names: (keyof Draft)[]): boolean =>
    names.some((name) => before[name] !== draft[name]);
  return {
    ...(differs("name") && { name: draft.name.trim() }),
    ...(differs("note") && { note: draft.note }),
    ...(differs("plan") && { plan: draft.plan }),
    ...(isCustom && differs("requests", "tokens") && { limits: limitsOf(draft) }),
    ...(differs("units") && { provisioned_units: Number(draft.units) }),
    ...(differs("pool") && { provisioned_pool: draft.pool === "" ? null : draft.pool }),
    ...(differs("models") && { allowed_models: linesOf(draft.models) }),
    ...(differs("networks") && { allowed_networks: linesOf(draft.networks) }),
    ...(differs("expires") && {
      expires_at: draft.expires === "" ? null : new Date(draft.expires).toISOString(),
    }),
  };
}

function linesOf(text: string): string[] | null {
  const lines = text.split(/[\n,]/).flatMap((line) => line.trim() || []);
  return lines.length === 0 ? null : lines;
}

/** As a field of the browser has it, in the zone of the viewer, to the minute. */
function localText(at: string): string {
  const date = new Date(at);
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}
