import { type ReactNode, useState } from "react";

/** Something that few look at. What is in it, and what that reads, is made when it is opened. */
export function Details({
  summary,
  children,
}: {
  readonly summary: string;
  readonly children: ReactNode;
}) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details className="card" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{summary}</summary>
      {isOpen && <div>{children}</div>}
    </details>
  );
}
