import { type FormEvent, useState } from "react";
import { useLocation } from "wouter";

/** By the beginning of an id. Of an API key only the part that is no secret gets into the address. */
const places: readonly { readonly pattern: RegExp; readonly path: (id: string) => string }[] = [
  { pattern: /^req_[0-9a-f]+$/, path: (id) => `/calls/${id}` },
  { pattern: /^key_\w+$/, path: (id) => `/keys/${id}` },
  { pattern: /^sk-slc_\w{8,}$/, path: (text) => `/keys/${text.slice(0, 15)}` },
  { pattern: /^acct_\w+$/, path: (id) => `/accounts/${id}` },
];

/** Goes to the page of any id; `/` leads to it. */
export function Search() {
  const [text, setText] = useState("");
  const [isUnknown, setUnknown] = useState(false);
  const [, navigate] = useLocation();
  const go = (event: FormEvent): void => {
    event.preventDefault();
    const id = text.trim();
    const place = places.find(({ pattern }) => pattern.test(id));
    setUnknown(place === undefined && id !== "");
    if (place === undefined) return;
    setText("");
    navigate(place.path(id));
  };
  return (
    <form role="search" className="search" onSubmit={go}>
      <input
        id="search"
        className="input"
        type="search"
        aria-label="Find by id"
        aria-describedby={isUnknown ? "search-hint" : undefined}
        placeholder="Find an id ( / )"
        autoComplete="off"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      {isUnknown && (
        <span id="search-hint" role="status" className="search-hint">
          Ids begin with req_, key_, acct_ or sk-slc_.
        </span>
      )}
    </form>
  );
}
