import { type FormEvent, useState } from "react";
import type { AuditEntryView, AuditVerbs } from "../../api/contract.ts";
import { useList } from "../../api/use-read.ts";
import { AppLink, Button } from "../../parts/button.tsx";
import { Chip } from "../../parts/chip.tsx";
import { Empty } from "../../parts/error-note.tsx";
import { Field, optionsOf, Select } from "../../parts/field.tsx";
import { Listing } from "../../parts/listing.tsx";
import { Page } from "../../parts/page.tsx";
import { RangePicker, useRange } from "../../parts/range-picker.tsx";
import type { Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { actorName } from "../../shell/role.ts";
import { useUrl } from "../../url.ts";
import { FieldChanges } from "./field-changes.tsx";

const filters = { account: "", actor: "", action: "", subject: "" };

/** Who changed what? Account holders see what happened in their own account. */
export function AuditPage() {
  const [url, change] = useUrl(filters);
  const range = useRange("30d");
  const entries = useList("/audit", {
    ...range,
    account_id: url.account,
    actor_id: url.actor,
    action: url.action,
    subject_id: url.subject,
  });
  const isFiltered = Object.values(url).some((value) => value !== "");
  return (
    <Page title="Audit" question="Who changed what?" actions={<RangePicker initial="30d" />}>
      <div className="row">
        <Select
          label="Action"
          isLabelHidden
          value={url.action}
          options={optionsOf(
            [...new Set([...actions, ...(url.action ? [url.action] : [])])],
            "All actions",
          )}
          onChange={(action) => change({ action })}
        />
        <SubjectFilter key={url.subject} value={url.subject} onChange={change} />
        <Chip
          param="actor"
          name="Who"
          text={entries.query.data?.find(({ actor }) => actor.id === url.actor)?.actor.name}
        />
        <Chip param="account" name="Account" />
        {isFiltered && (
          <Button look="quiet" onPress={() => change(filters)}>
            Show all
          </Button>
        )}
      </div>
      <Listing
        list={entries}
        caption="Changes"
        columns={columns}
        idOf={({ sequence }) => String(sequence)}
        empty={
          <Empty
            sentence={
              isFiltered
                ? "Nothing in this range fits these filters."
                : "Nothing was changed in this range. Try a longer one."
            }
            command="sluice audit list --since 30d"
          />
        }
      />
    </Page>
  );
}

const erasure = [
  "erase_begin",
  "erase_budgets",
  "erase_keys",
  "erase_applications",
  "erase_users",
  "erase",
] as const;
/** All of the contract: with one more or less, this does not compile. */
const verbs: AuditVerbs = {
  account: ["create", "update", "delete", ...erasure],
  application: ["create", "update", "delete"],
  key: ["create", "update", "rotate", "end_secret", "leak", "revoke"],
  budget: ["create", "update", "delete"],
  usage: ["reprice_begin", "reprice", "erase_end_user_begin", "erase_end_user"],
  user: ["create", "update", "link", "delete"],
  token: ["create", "revoke"],
  session: ["start", "end"],
  playground: ["call"],
};
const actions = Object.entries(verbs).flatMap(([kind, own]: [string, string[]]) =>
  own.map((verb) => `${kind}.${verb}`),
);

/** An id in the address, when it is complete. */
function SubjectFilter({
  value,
  onChange,
}: {
  readonly value: string;
  readonly onChange: (change: { readonly subject: string }) => void;
}) {
  const [text, setText] = useState(value);
  const find = (event: FormEvent): void => {
    event.preventDefault();
    onChange({ subject: text.trim() });
  };
  return (
    <form className="row" onSubmit={find}>
      <Field
        label="Id of what was changed"
        isLabelHidden
        placeholder="Id, such as key_..."
        isMono
        value={text}
        onChange={setText}
      />
      <Button type="submit">Find</Button>
    </form>
  );
}

const columns: readonly Column<AuditEntryView>[] = [
  ["Time", ({ at }) => <Time at={at} />],
  ["Who", (entry) => <Actor entry={entry} />],
  ["Action", ({ action }) => <FilterLink filter="action" value={action} text={action} />],
  ["What", (entry) => <Subject entry={entry} />],
  ["Changes", (entry) => <FieldChanges entry={entry} />],
];

interface EntryProps {
  readonly entry: AuditEntryView;
}

function FilterLink({
  filter,
  value,
  text,
}: {
  readonly filter: "actor" | "action" | "subject";
  readonly value: string;
  readonly text: string;
}) {
  const [url] = useUrl(filters);
  const own = Object.entries({ ...url, [filter]: value }).filter(([, each]) => each !== "");
  return (
    <AppLink to="/audit" own={Object.fromEntries(own)}>
      {text}
    </AppLink>
  );
}

/** The name and how it was proved, with the address in the title. */
function Actor({ entry: { actor, address } }: EntryProps) {
  const { id, kind } = actor;
  const title = address === null ? undefined : `from ${address}`;
  return (
    <span title={title}>
      {id === null ? actorName(actor) : <FilterLink filter="actor" value={id} text={actor.name} />}
      {kind === "token" && <span className="muted"> by a token</span>}
    </span>
  );
}

function Subject({ entry: { subject, actor, before, after } }: EntryProps) {
  const { type, id } = subject;
  const { name, email } = { name: null, email: null, ...before, ...after };
  const named = [email, name, id === actor.id ? actor.name : ""];
  const text = named.find((each) => typeof each === "string" && each !== "");
  return (
    <span title={id}>
      {type} <FilterLink filter="subject" value={id} text={String(text ?? id)} />
      {text !== undefined && type === "key" && (
        <>
          {" "}
          <code className="muted small">{id}</code>
        </>
      )}
    </span>
  );
}
