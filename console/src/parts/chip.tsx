import { useUrl } from "../url.ts";
import { Button } from "./button.tsx";

/** A filter of the address that no field shows, with the way to remove it. */
export function Chip({
  param,
  name,
  text,
}: {
  /** In the address. */
  readonly param: string;
  readonly name: string;
  /** Instead of the value, such as the name of an account. */
  readonly text?: string | null | undefined;
}) {
  const [{ [param]: value = "" }, change] = useUrl<string>({ [param]: "" });
  if (value === "") return null;
  const shown = text ?? value;
  return (
    <Button
      aria-label={`Remove the filter ${name}: ${shown}`}
      onPress={() => change({ [param]: "" })}
    >
      {name}: {shown} <span aria-hidden="true">✕</span>
    </Button>
  );
}
