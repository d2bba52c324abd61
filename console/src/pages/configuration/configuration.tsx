import { useState } from "react";
import type { Configuration as InForce } from "../../api/contract.ts";
import { useRead } from "../../api/use-read.ts";
import { Badge } from "../../parts/badge.tsx";
import { AppLink, Button } from "../../parts/button.tsx";
import { Copy } from "../../parts/copy.tsx";
import { Empty, Note } from "../../parts/error-note.tsx";
import { Field, Select } from "../../parts/field.tsx";
import { Loaded, Page, Section } from "../../parts/page.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { useUrl } from "../../url.ts";

type Setting = InForce["data"][number];

const sources = {
  default: "default",
  file: "file",
  environment: "environment",
  command_line: "command line",
} as const;

/** What is in force, and where is it changed? */
export function Configuration() {
  const configuration = useRead("/configuration");
  return (
    <Page title="Configuration" question="What is in force, and where is it changed?">
      <Loaded query={configuration}>
        {(found) => (
          <>
            <Source found={found} />
            <Settings found={found} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Source({ found: { path, loaded_at: at, data } }: { readonly found: InForce }) {
  const pending = data.filter(({ is_pending: isPending }) => isPending);
  return (
    <>
      {path === null ? (
        <p>
          These are the settings of the built-in demo. Only its command line changes them. To
          configure a gateway, write a file and start <code>sluice serve --config sluice.yaml</code>
          .
        </p>
      ) : (
        <p className="row">
          Change it in <code>{path}</code> <Copy text={path} what="the path" /> loaded{" "}
          <Time at={at} isRelative />. The gateway reads it again by itself when it is saved, and
          checks it: each change takes effect then, or after a restart, as the table says.{" "}
          <AppLink to="/gateways">Gateways</AppLink> tells whether all have the same file.
        </p>
      )}
      {pending.length > 0 && (
        <Note tone="warn">
          The file has other values for {pending.map(({ key }) => key).join(", ")}. They wait for{" "}
          <code>sluice restart</code>.
        </Note>
      )}
    </>
  );
}

/** At first; a gateway with many models has thousands. */
const mostShown = 60;

function Settings({ found: { path, data: rows } }: { readonly found: InForce }) {
  const [{ find, source }, change] = useUrl({ find: "", source: "" });
  const [isWhole, setWhole] = useState(false);
  const words = find.toLowerCase().split(/\s+/);
  const shown = rows.filter((row) => {
    const text = `${row.key} ${valueText(row.value)} ${row.about}`.toLowerCase();
    const fits = source === "" || (source === "set") === (row.source !== "default");
    return fits && words.every((word) => text.includes(word));
  });
  return (
    <Section title="Settings">
      <div className="row">
        <Field
          label="Find a setting"
          isLabelHidden
          type="search"
          placeholder="Find a setting"
          value={find}
          onChange={(text) => change({ find: text })}
        />
        <Select
          label="Where from"
          isLabelHidden
          value={source}
          options={[
            { value: "", label: "All settings" },
            { value: "set", label: "Only what is set" },
            { value: "default", label: "Only defaults" },
          ]}
          onChange={(value) => change({ source: value })}
        />
        <span className="muted" role="status">
          {shown.length} of {rows.length}
        </span>
      </div>
      {shown.length === 0 ? (
        <Empty sentence="No setting has these words." command="sluice configuration" />
      ) : (
        <Table
          caption="Settings"
          columns={columnsOf(path !== null)}
          rows={isWhole ? shown : shown.slice(0, mostShown)}
          idOf={({ key }) => key}
        />
      )}
      {!isWhole && shown.length > mostShown && (
        <Button onPress={() => setWhole(true)}>Show all {shown.length}</Button>
      )}
    </Section>
  );
}

const columnsOf = (hasFile: boolean): readonly Column<Setting>[] => [
  [
    "Setting",
    ({ key, about }) => (
      <>
        <code>{key}</code>
        <br />
        <span className="muted">
          {about
            .split("`")
            .map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}
        </span>
      </>
    ),
  ],
  ["Value", ({ value }) => <code>{valueText(value)}</code>],
  ["From", (setting) => <From setting={setting} hasFile={hasFile} />],
  [
    "Takes effect",
    ({ takes_effect: when, is_pending: isPending }) =>
      isPending ? (
        <Badge tone="warn">restart to apply</Badge>
      ) : (
        <span className="nowrap">{effects[when]}</span>
      ),
    "wide",
  ],
];

/** Of a change, once the file is saved: the gateway reloads it by itself. */
const effects = { reload: "when saved", restart: "after a restart" } as const;

function From({
  setting: { source, line, variables },
  hasFile,
}: {
  readonly setting: Setting;
  readonly hasFile: boolean;
}) {
  const place = line === null ? "" : `, line ${line}`;
  return (
    <>
      <span className={source === "default" ? "muted" : "nowrap"}>
        {source === "file" && !hasFile ? "the demo" : `${sources[source]}${place}`}
      </span>
      {variables.length > 0 && (
        <>
          : <code>{variables.join(", ")}</code>
        </>
      )}
    </>
  );
}

function valueText(value: unknown): string {
  if (value === null) return "not set";
  return typeof value === "string" ? value : JSON.stringify(value);
}
