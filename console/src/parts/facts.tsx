import type { ReactNode } from "react";

export type Fact = readonly [name: string, value: ReactNode];

/** What is known of one thing, each fact with its name. */
export function Facts({ facts }: { readonly facts: readonly Fact[] }) {
  return (
    <dl className="facts card">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
