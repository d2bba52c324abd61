import { Link } from "wouter";
import type { RefusalView } from "../../api/contract.ts";
import { useRead } from "../../api/use-read.ts";
import { Empty } from "../../parts/error-note.tsx";
import { Loaded } from "../../parts/page.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { useHref } from "../../url.ts";
import { FilterBar, type Filters } from "../usage/filters.tsx";
import { statusText } from "./call-words.tsx";

/** Requests that got an error, also those that did not become calls, such as a 400. */
export function LastRefusals({ filters }: { readonly filters: Filters }) {
  const { account_id, key_id } = filters.parameters;
  const refusals = useRead("/refusals", { account_id, key_id });
  const href = useHref();
  const columns: readonly Column<RefusalView>[] = [
    {
      title: "At",
      cell: ({ id, at }) => (
        <Link href={href(`/calls/${id}`)}>
          <Time at={at} isExact />
        </Link>
      ),
    },
    { title: "Status", cell: ({ status, code }) => statusText(status, code) },
    { title: "Application", cell: ({ application }) => application ?? "", isWideOnly: true },
    { title: "Model", cell: ({ model }) => model ?? "", isWideOnly: true },
    { title: "Why", cell: ({ summary }) => summary },
  ];
  return (
    <>
      <p className="muted">
        The last 20 of each key, until a restart of the gateway. Requests that were refused before
        they became calls, such as a malformed body, are only here.
      </p>
      <FilterBar filters={filters} names={["account", "key"]} />
      <Loaded query={refusals}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty
              sentence="No request was refused since the last restart."
              command="sluice refusals"
            />
          ) : (
            <Table caption="Last refusals" columns={columns} rows={data} idOf={({ id }) => id} />
          )
        }
      </Loaded>
    </>
  );
}
