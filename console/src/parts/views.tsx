import "./views.css";
import { Link } from "wouter";
import type { Option } from "./field.tsx";

/** Links between the views of one page. `href` makes the address of a view. */
export function Views({
  label,
  views,
  current,
  href,
}: {
  readonly label: string;
  readonly views: readonly Option[];
  readonly current: string;
  readonly href: (value: string) => string;
}) {
  return (
    <nav aria-label={label} className="views">
      {views.map(({ value, label: name }) => (
        <Link
          key={value}
          href={href(value)}
          className="view"
          aria-current={value === current ? "page" : undefined}
        >
          {name}
        </Link>
      ))}
    </nav>
  );
}

/** The steps of a task, the current one marked. */
export function Steps({
  steps,
  current,
}: {
  readonly steps: readonly string[];
  /** From 0; behind the last: all are done. */
  readonly current: number;
}) {
  return (
    <ol className="steps">
      {steps.map((step, index) => (
        <li key={step} aria-current={index === current ? "step" : undefined}>
          <span aria-hidden="true">{index < current ? "✓" : index + 1}</span>
          {step}
          {index < current && <span className="hidden"> (done)</span>}
        </li>
      ))}
    </ol>
  );
}
