import "./notes.css";
import type { ReactNode } from "react";

export type Tone = "plain" | "ok" | "warn" | "bad" | "accent";

/** Status is never colour alone. */
const icons: Readonly<Record<Tone, string>> = {
  plain: "○",
  ok: "●",
  warn: "▲",
  bad: "✕",
  accent: "◆",
};

export function Badge({ tone, children }: { readonly tone: Tone; readonly children: ReactNode }) {
  return (
    <span className={`badge ${tone}`}>
      <span aria-hidden="true">{icons[tone]}</span>
      {children}
    </span>
  );
}
