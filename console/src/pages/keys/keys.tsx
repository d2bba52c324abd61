import { useState } from "react";
import type { IssuedKey, KeyView } from "../../api/contract.ts";
import { useList } from "../../api/use-read.ts";
import { AppLink, Button } from "../../parts/button.tsx";
import { Chip } from "../../parts/chip.tsx";
import { Closing } from "../../parts/dialog.tsx";
import { Empty } from "../../parts/error-note.tsx";
import { optionsOf, Select } from "../../parts/field.tsx";
import { Count } from "../../parts/numbers.tsx";
import { Listing } from "../../parts/listing.tsx";
import { Page } from "../../parts/page.tsx";
import { Secret } from "../../parts/secret.tsx";
import type { Column } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { Views } from "../../parts/views.tsx";
import { useMayChange, useSeesAll } from "../../shell/role.ts";
import { useUrl } from "../../url.ts";
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
  return (
    <Page title="Applications and keys" question="Who can call, and with what?">
      <Views label="Applications or keys" views={views} />
      {view === "applications" ? <Applications /> : <Keys />}
    </Page>
  );
}

function Keys() {
  const [{ create: wanted }, changeWanted] = useUrl({ create: "" });
  const [url, change] = useUrl({ status: "", environment: "", account: "", application: "" });
  const mayChange = useMayChange();
  const ofAll = useSeesAll();
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
  };
  const create = (
    <Button look="primary" onPress={() => changeWanted({ create: "key" })}>
      Create key
    </Button>
  );
  const rows = keys.query.data ?? [];
  // Those of the rows: there is no request for them.
  const environments = new Set(rows.map(({ environment }) => environment));
  if (url.environment !== "") environments.add(url.environment);
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
        <Select
          label="Environment"
          isLabelHidden
          value={url.environment}
          options={optionsOf([...environments], "All environments")}
          onChange={(environment) => change({ environment })}
        />
        <Chip
          param="account"
          name="Account"
          text={rows.find(({ account_id: id }) => id === url.account)?.account}
        />
        <Chip
          param="application"
          name="Application"
          text={rows.find(({ application_id: id }) => id === url.application)?.application}
        />
      </div>
      <Listing
        list={keys}
        caption="Keys"
        columns={columns.filter(([title]) => ofAll || title !== "Account")}
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
        <Closing value={() => changeWanted({ create: "" })}>
          <CreateKey onCreated={created} />
        </Closing>
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

const columns: readonly Column<KeyView>[] = [
  ["Key", (key) => <AppLink to={`/keys/${key.id}`}>{keyName(key)}</AppLink>],
  [
    "Application",
    ({ application, application_id: id }) => (
      <AppLink to="/keys" own={{ application: id }}>
        {application}
      </AppLink>
    ),
  ],
  [
    "Account",
    ({ account, account_id: id }) => (
      <AppLink to="/keys" own={{ account: id }}>
        {account}
      </AppLink>
    ),
    "wide",
  ],
  ["Environment", ({ environment }) => environment, "wide"],
  ["Plan", ({ plan }) => plan, "wide"],
  [
    "Tokens / min",
    ({ effective_limits: limits }) => <Count value={limits?.tokens_per_minute ?? null} />,
    "wide number",
  ],
  [
    "Requests / min",
    ({ effective_limits: limits }) => <Count value={limits?.requests_per_minute ?? null} />,
    "wide number",
  ],
  ["Last used", (key) => <Time at={lastUse(key)} isRelative />],
  ["Expires", (key) => <Time at={key.expires_at} />, "wide"],
  ["Status", (key) => <KeyStatusBadge status={key.status} />],
];
