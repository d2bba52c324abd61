import { useState } from "react";
import { Link } from "wouter";
import type { IssuedKey, KeyView } from "../../api/contract.ts";
import { useCache, useList } from "../../api/use-read.ts";
import { Button } from "../../parts/button.tsx";
import { Empty } from "../../parts/error-note.tsx";
import { type Option, Select } from "../../parts/field.tsx";
import { Count } from "../../parts/numbers.tsx";
import { Listing } from "../../parts/listing.tsx";
import { Page } from "../../parts/page.tsx";
import { Secret } from "../../parts/secret.tsx";
import type { Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { Views } from "../../parts/views.tsx";
import { useMayChange, useSeesAll } from "../../shell/role.ts";
import { useHref, useUrl } from "../../url.ts";
import { Applications } from "./applications.tsx";
import { CreateKey } from "./create-key.tsx";
import { keyName, KeyStatusBadge, lastUse } from "./key-words.tsx";

const statuses = [
  { value: "", label: "All keys" },
  { value: "active", label: "Active keys" },
  { value: "inactive", label: "Inactive keys" },
];

const views = [
  { value: "", label: "Keys" },
  { value: "applications", label: "Applications" },
];

/** Who can call, and with what? */
export function KeysPage() {
  const [{ view }] = useUrl({ view: "" });
  const href = useHref();
  return (
    <Page title="Applications and keys" question="Who can call, and with what?">
      <Views
        label="Applications or keys"
        views={views}
        current={view}
        href={(value) => href("/keys", value === "" ? {} : { view: value })}
      />
      {view === "applications" ? <Applications /> : <Keys />}
    </Page>
  );
}

function Keys() {
  const [{ create: wanted }, changeWanted] = useUrl({ create: "" });
  const [url, change] = useUrl({ status: "", environment: "", account: "", application: "" });
  const mayChange = useMayChange();
  const ofAll = useSeesAll();
  const cache = useCache();
  const [issued, setIssued] = useState<IssuedKey>();
  const keys = useList("/keys", {
    status: url.status,
    environment: url.environment,
    account_id: url.account,
    application_id: url.application,
  });
  const created = (answer: IssuedKey): void => {
    changeWanted({ create: "" });
    setIssued(answer);
    cache.write("/keys/{id}", { id: answer.key.id }, answer.key);
    cache.refresh("/keys");
  };
  const create = (
    <Button look="primary" onPress={() => changeWanted({ create: "key" })}>
      Create key
    </Button>
  );
  const isFiltered = Object.values(url).some((value) => value !== "");
  return (
    <>
      <div className="row">
        {mayChange && create}
        <Select
          label="Status"
          isLabelHidden
          value={url.status}
          options={statuses}
          onChange={(status) => change({ status })}
        />
        {filters
          .filter(({ name }) => ofAll || name !== "account")
          .map((filter) => (
            <Select
              key={filter.name}
              label={filter.label}
              isLabelHidden
              value={url[filter.name]}
              options={optionsOf(filter, url[filter.name], keys.query.data ?? [])}
              onChange={(value) => change({ [filter.name]: value })}
            />
          ))}
      </div>
      <Listing
        list={keys}
        caption="Keys"
        columns={columns.filter(({ title }) => ofAll || title !== "Account")}
        idOf={({ id }) => id}
        empty={
          <Empty
            sentence={isFiltered ? "No key fits these filters." : "There are no keys yet."}
            action={mayChange && !isFiltered && create}
            command="sluice keys create --application APPLICATION --plan PLAN"
          />
        }
      />
      {mayChange && wanted !== "" && (
        <CreateKey onClose={() => changeWanted({ create: "" })} onCreated={created} />
      )}
      {issued !== undefined && (
        <Secret
          title={`The API key of ${keyName(issued.key)}`}
          what="API key"
          secret={issued.api_key}
          environment={issued.key.environment}
          onStored={() => setIssued(undefined)}
        />
      )}
    </>
  );
}

interface Filter {
  readonly name: "account" | "application" | "environment";
  readonly label: string;
  readonly all: string;
  readonly option: (key: KeyView) => Option;
}

const filters: readonly Filter[] = [
  {
    name: "account",
    label: "Account",
    all: "All accounts",
    option: ({ account_id: value, account: label }) => ({ value, label }),
  },
  {
    name: "application",
    label: "Application",
    all: "All applications",
    option: ({ application_id: value, application: label }) => ({ value, label }),
  },
  {
    name: "environment",
    label: "Environment",
    all: "All environments",
    option: ({ environment }) => ({ value: environment, label: environment }),
  },
];

/** The choices that the rows have, without a request of their own. */
function optionsOf({ all, option }: Filter, chosen: string, rows: readonly KeyView[]): Option[] {
  const found = new Map(rows.map((row) => [option(row).value, option(row)]));
  if (chosen !== "" && !found.has(chosen)) found.set(chosen, { value: chosen, label: chosen });
  return [{ value: "", label: all }, ...found.values()];
}

const columns: readonly Column<KeyView>[] = [
  { title: "Key", cell: (key) => <KeyLink view={key} /> },
  { title: "Application", cell: ({ application }) => application },
  { title: "Account", cell: ({ account }) => account, isWideOnly: true },
  { title: "Environment", cell: ({ environment }) => environment, isWideOnly: true },
  { title: "Plan", cell: ({ plan }) => plan, isWideOnly: true },
  {
    title: "Tokens / min",
    cell: ({ effective_limits: limits }) => <Count value={limits?.tokens_per_minute ?? null} />,
    isNumber: true,
    isWideOnly: true,
  },
  {
    title: "Requests / min",
    cell: ({ effective_limits: limits }) => <Count value={limits?.requests_per_minute ?? null} />,
    isNumber: true,
    isWideOnly: true,
  },
  { title: "Last used", cell: (key) => <Time at={lastUse(key)} isRelative /> },
  { title: "Expires", cell: (key) => <Time at={key.expires_at} />, isWideOnly: true },
  { title: "Status", cell: (key) => <KeyStatusBadge status={key.status} /> },
];

function KeyLink({ view }: { readonly view: KeyView }) {
  const href = useHref();
  return <Link href={href(`/keys/${view.id}`)}>{keyName(view)}</Link>;
}
