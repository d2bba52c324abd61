import { type ReactNode, useEffect, useRef, useState } from "react";
import type { ApiFailure } from "../api/failure.ts";
import { ErrorNote, Note } from "./error-note.tsx";
import { ago } from "./time.tsx";

/** What the component of a page gets. */
export interface PageProps {
  /** What the path names, such as a key; else empty. */
  readonly id: string;
}

let isFirst = true;

/** A page: its one heading, which takes the focus after a navigation, and its actions. */
export function Page({
  title,
  question,
  actions,
  children,
}: {
  readonly title: string;
  /** What the page answers, in a sentence. */
  readonly question?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (!isFirst) heading.current?.focus();
    isFirst = false;
  }, []);
  useEffect(() => {
    document.title = `${title} · Sluice`;
  }, [title]);
  return (
    <div className="stack">
      <div className="row spread">
        <div>
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {question !== undefined && <p className="muted">{question}</p>}
        </div>
        {actions !== undefined && <div className="row">{actions}</div>}
      </div>
      {children}
    </div>
  );
}

/** A part of a page, with a heading of its own. */
export function Section({
  title,
  label = title,
  actions,
  children,
}: {
  readonly title: string;
  /** By which it is found, where the title is not a name. */
  readonly label?: string;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}) {
  return (
    <section className="stack tight" aria-label={label}>
      <div className="row spread">
        <h2>{title}</h2>
        <div className="row">{actions}</div>
      </div>
      {children}
    </section>
  );
}

const skeletonMs = 200;

/** Bars in the place of rows; only after a moment, so that fast answers do not flicker. */
export function Skeleton({ rows = 5 }: { readonly rows?: number }) {
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), skeletonMs);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className="skeleton stack tight" role="status" aria-label="Loading">
      {isShown && Array.from({ length: rows }, (_, index) => <span key={index} />)}
    </div>
  );
}

/** As a query of `api/use-read.ts` has it. */
export interface Reading<Value> {
  readonly data: Value | undefined;
  readonly error: ApiFailure | null;
  readonly refetch: () => unknown;
  readonly dataUpdatedAt: number;
}

/** What was read, or that it is being read, or why not. Old data stays when a repeat fails. */
export function Loaded<Value>({
  query,
  children,
}: {
  readonly query: Reading<Value>;
  readonly children: (value: Value) => ReactNode;
}) {
  const { data, error, refetch, dataUpdatedAt } = query;
  if (data === undefined) {
    return error === null ? <Skeleton /> : <ErrorNote failure={error} onRetry={refetch} />;
  }
  return (
    <>
      {error !== null && (
        <Note tone="warn">
          This is from {ago(dataUpdatedAt)}: {error.message}
        </Note>
      )}
      {children(data)}
    </>
  );
}
