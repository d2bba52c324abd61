import { type RefObject, useEffect, useState } from "react";
import { Button } from "./button.tsx";

type Outcome = "copied" | "refused" | undefined;
const outcomeMs = 3_000;

/** Copies a text; the outcome is said, and stands on the button for a moment. */
export function Copy({
  text,
  what,
  field,
  look = "quiet",
  label = "Copy",
}: {
  readonly text: string;
  /** Completes "Copy ..." for screen readers. */
  readonly what: string;
  /** The element that shows the text, for browsers without a clipboard on plain HTTP. */
  readonly field?: RefObject<HTMLElement | null>;
  readonly look?: "quiet" | "primary" | "plain";
  readonly label?: string;
}) {
  const [outcome, setOutcome] = useState<Outcome>();
  useEffect(() => {
    if (outcome === undefined) return undefined;
    const timer = setTimeout(() => setOutcome(undefined), outcomeMs);
    return () => clearTimeout(timer);
  }, [outcome]);
  const copy = async (): Promise<void> => {
    const isCopied = await copyText(text, field?.current ?? null);
    setOutcome(isCopied ? "copied" : "refused");
  };
  const said = outcome === "copied" ? "Copied" : "Press Ctrl+C";
  return (
    <>
      <Button look={look} onPress={copy} aria-label={`${label} ${what}`}>
        {outcome === undefined ? label : said}
      </Button>
      <span className="hidden" role="status">
        {outcome !== undefined && said}
      </span>
    </>
  );
}

/**
 * By the clipboard, which only secure pages have, else by selecting what shows the text. Focus does
 * not move: a dialog would take it back. If both fail, the text stays selected.
 */
async function copyText(text: string, shown: HTMLElement | null): Promise<boolean> {
  if (window.isSecureContext) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // The user has refused it.
    }
  }
  const place = shown ?? document.body.appendChild(hiddenText(text));
  select(place);
  // The only way that works on plain HTTP.
  const isCopied = document.execCommand("copy");
  if (place !== shown) place.remove();
  return isCopied;
}

function select(element: HTMLElement): void {
  const range = document.createRange();
  range.selectNodeContents(element);
  const selection = window.getSelection();
  selection?.removeAllRanges();
  selection?.addRange(range);
}

function hiddenText(text: string): HTMLElement {
  const element = document.createElement("span");
  element.className = "hidden";
  element.textContent = text;
  return element;
}
