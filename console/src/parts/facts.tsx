import type { ReactNode } from "react";

export type Fact = readonly [name: string, value: ReactNode];

/** What is known of one thing, each fact with its name; what has no value is left out. */
export function Facts({ facts }: { readonly facts: readonly Fact[] }) {
  return (
    <dl className="facts card">
      {facts.map(([name, value]) => {
        if (value === null || value === undefined || value === false) return null;
        return (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        );
      })}
    </dl>
  );
}
