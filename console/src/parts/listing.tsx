import type { ReactNode } from "react";
import { Loaded, type Reading } from "./page.tsx";
import { More, Table, type TableProps } from "./table.tsx";

interface ListingProps<Row> extends Omit<TableProps<Row>, "rows"> {
  /** Of `useList`. */
  readonly list: {
    readonly query: Reading<readonly Row[]>;
    readonly hasMore: boolean;
    readonly isLoadingMore: boolean;
    readonly more: () => unknown;
  };
  /** Instead of a table without rows. */
  readonly empty: ReactNode;
}

/** The rows of a list of the API: loading, failed, empty, or a table that grows. */
export function Listing<Row>({ list, empty, ...table }: ListingProps<Row>) {
  return (
    <>
      <Loaded query={list.query}>
        {(rows) => (rows.length === 0 ? empty : <Table {...table} rows={rows} />)}
      </Loaded>
      <More hasMore={list.hasMore} isLoading={list.isLoadingMore} onMore={list.more} />
    </>
  );
}
