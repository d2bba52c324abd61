import "./table.css";
import type { ReactNode } from "react";
import { Button } from "./button.tsx";

/**
 * `number`: aligned for digits. `wide`: not on phones, where rows are cards and three columns that
 * matter are enough.
 */
export type Column<Row> = readonly [
  title: string,
  cell: (row: Row) => ReactNode,
  look?: "number" | "wide" | "wide number",
];

export interface TableProps<Row> {
  /** What the rows are; screen readers say it. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly idOf: (row: Row) => string;
  /** Of the row that is open beside the table. */
  readonly openId?: string | undefined;
}

/** Rows on wide screens, cards on narrow ones. The first column names the row. */
export function Table<Row>({ caption, columns, rows, idOf, openId }: TableProps<Row>) {
  return (
    <div className="table-frame" role="group" aria-label={caption} tabIndex={0}>
      <table className="table">
        <caption className="hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map(([name, , look]) => (
              <th key={name} scope="col" className={look}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={idOf(row)} aria-current={idOf(row) === openId ? "true" : undefined}>
              {columns.map(([name, cell, look], index) => {
                const Cell = index === 0 ? "th" : "td";
                return (
                  <Cell key={name} scope={index === 0 ? "row" : undefined} className={look}>
                    <span className="card-title" aria-hidden="true">
                      {name}
                    </span>
                    <span className="cell">{cell(row)}</span>
                  </Cell>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Lists have cursors, not numbers of pages. */
export function More({
  hasMore,
  isLoading,
  onMore,
}: {
  readonly hasMore: boolean;
  readonly isLoading: boolean;
  readonly onMore: () => unknown;
}) {
  if (!hasMore) return null;
  return (
    <Button isBusy={isLoading} onPress={onMore}>
      Show more
    </Button>
  );
}
