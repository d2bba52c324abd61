import "./views.css";
import { Link, useLocation } from "wouter";
import { useHref, useUrl } from "../url.ts";
import type { Option } from "./field.tsx";

/** Links between the views of one page, which the address names; the first has no name. */
export function Views({
  label,
  views,
  own = {},
}: {
  readonly label: string;
  readonly views: readonly Option[];
  /** What the address of each view also says. */
  readonly own?: Readonly<Record<string, string>>;
}) {
  const [path] = useLocation();
  const [{ view }] = useUrl({ view: "" });
  const href = useHref();
  return (
    <nav aria-label={label} className="views">
      {views.map(({ value, label: name }) => (
        <Link
          key={value}
          href={href(path, { ...own, ...(value !== "" && { view: value }) })}
          className="view"
          aria-current={value === view ? "page" : undefined}
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
