import "./table.css";
import type { ReactNode } from "react";
import { Button } from "./button.tsx";

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ReactNode;
  readonly isNumber?: boolean;
  /** On phones rows are cards, which leave these out. Three columns that matter are enough. */
  readonly isWideOnly?: boolean;
}

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
            {columns.map((column) => (
              <th key={column.title} scope="col" className={classOf(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={idOf(row)} aria-current={idOf(row) === openId ? "true" : undefined}>
              {columns.map((column, index) => (
                <Cell key={column.title} column={column} row={row} isName={index === 0} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface CellProps<Row> {
  readonly column: Column<Row>;
  readonly row: Row;
  readonly isName: boolean;
}

function Cell<Row>({ column, row, isName }: CellProps<Row>) {
  const content = (
    <>
      <span className="card-title" aria-hidden="true">
        {column.title}
      </span>
      <span className="cell">{column.cell(row)}</span>
    </>
  );
  if (!isName) return <td className={classOf(column)}>{content}</td>;
  return (
    <th scope="row" className={classOf(column)}>
      {content}
    </th>
  );
}

function classOf({ isNumber, isWideOnly }: Column<never>): string {
  return `${isNumber === true ? "number" : ""} ${isWideOnly === true ? "wide-only" : ""}`.trim();
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
    <div>
      <Button isBusy={isLoading} onPress={onMore}>
        Show more
      </Button>
    </div>
  );
}
