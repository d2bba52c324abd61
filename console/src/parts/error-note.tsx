import "./notes.css";
import type { ReactNode } from "react";
import type { ApiFailure } from "../api/failure.ts";
import { Button } from "./button.tsx";
import { Copy } from "./copy.tsx";

const icons = { ok: "✓", warn: "▲", bad: "✕" } as const;

/** Something to know; `tone` says whether it is good or needs attention. `more` stands below. */
export function Note({
  tone,
  children,
  more,
}: {
  readonly tone: keyof typeof icons;
  readonly children: ReactNode;
  readonly more?: ReactNode;
}) {
  return (
    <div className={`note stack tight ${tone}`} role={tone === "bad" ? "alert" : "status"}>
      <p>
        <span aria-hidden="true">{icons[tone]} </span>
        {children}
      </p>
      {more}
    </div>
  );
}

/** What failed, what to do about it, and the id by which an operator finds the request. */
export function ErrorNote({
  failure,
  onRetry,
}: {
  readonly failure: ApiFailure;
  readonly onRetry?: () => unknown;
}) {
  const request = failure.requestId !== undefined && (
    <p className="row small">
      Request <code>{failure.requestId}</code>
      <Copy text={failure.requestId} what="the request's id" />
    </p>
  );
  const retry = onRetry !== undefined && <Button onPress={onRetry}>Try again</Button>;
  return (
    <Note
      tone="bad"
      more={
        <>
          {request}
          {retry}
        </>
      }
    >
      {failure.message}
    </Note>
  );
}

/** What a list or chart shows instead of nothing: a sentence, an action and a command. */
export function Empty({
  sentence,
  action,
  command,
}: {
  readonly sentence: string;
  readonly action?: ReactNode;
  readonly command?: string;
}) {
  return (
    <div className="empty stack">
      <p>{sentence}</p>
      {action}
      {command !== undefined && (
        <div className="row">
          <code>{command}</code>
          <Copy text={command} what="the command" />
        </div>
      )}
    </div>
  );
}
