import "./notes.css";
import type { ReactNode } from "react";
import type { ApiFailure } from "../api/failure.ts";
import { Button } from "./button.tsx";
import { Copy } from "./copy.tsx";

/** What failed, what to do about it, and the id by which an operator finds the request. */
export function ErrorNote({
  failure,
  onRetry,
}: {
  readonly failure: ApiFailure;
  readonly onRetry?: () => unknown;
}) {
  return (
    <div className="note bad" role="alert">
      <p>
        <span aria-hidden="true">✕ </span>
        {failure.message}
      </p>
      {failure.requestId !== undefined && (
        <p className="row small">
          Request <code>{failure.requestId}</code>
          <Copy text={failure.requestId} what="the request's id" />
        </p>
      )}
      {onRetry !== undefined && (
        <div>
          <Button onPress={onRetry}>Try again</Button>
        </div>
      )}
    </div>
  );
}

/** Something to know; `tone` says whether it is good or needs attention. */
export function Note({
  tone,
  children,
}: {
  readonly tone: "ok" | "warn" | "accent";
  readonly children: ReactNode;
}) {
  return (
    <div className={`note ${tone}`} role="status">
      {children}
    </div>
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
    <div className="empty">
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
