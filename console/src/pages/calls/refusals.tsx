import type { RefusalView } from "../../api/contract.ts";
import { useRead } from "../../api/use-read.ts";
import { Empty } from "../../parts/error-note.tsx";
import { Loaded } from "../../parts/page.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { FilterBar, type Filters } from "../usage/filters.tsx";
import { statusText } from "./call-words.tsx";
import { AppLink } from "../../parts/button.tsx";

/** Filters that the list itself applies. */
const compared = ["environment", "model", "dialect", "status", "code"] as const;

/** Requests that got an error, also those that did not become calls, such as a 400. */
export function LastRefusals({ filters }: { readonly filters: Filters }) {
  const { account_id, key_id } = filters.parameters;
  const refusals = useRead("/refusals", { account_id, key_id, limit: 500 });
  const columns: readonly Column<RefusalView>[] = [
    [
      "At",
      ({ id, at }) => (
        <AppLink to={`/calls/${id}`}>
          <Time at={at} isExact />
        </AppLink>
      ),
    ],
    ["Status", ({ status, code }) => statusText(status, code)],
    ["Application", ({ application }) => application ?? "", "wide"],
    ["Model", ({ model }) => model ?? "", "wide"],
    ["Why", ({ summary }) => summary],
  ];
  return (
    <>
      <p className="muted">
        The last 20 errors of each key, until a restart of the gateway. A key out of requests (429)
        and a malformed body (400) are only here. A call refused for its tokens (429) or its context
        window (400), or by the upstream, is also under Calls.
      </p>
      <FilterBar filters={filters} shown={["account", "key", ...compared]} />
      <Loaded query={refusals}>
        {({ data }) => {
          const rows = data.filter((row) =>
            compared.every((name) => ["", String(row[name])].includes(filters.values[name])),
          );
          return rows.length === 0 ? (
            <Empty
              sentence="No such request was refused since the last restart."
              command="sluice refusals"
            />
          ) : (
            <Table caption="Last refusals" columns={columns} rows={rows} idOf={({ id }) => id} />
          );
        }}
      </Loaded>
    </>
  );
}
