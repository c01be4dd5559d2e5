#!/usr/bin/env python3
"""titles.py [TABLE]: what guessit and FlexGet's two series parsers say of the titles of host/rss/tests/titles.tsv,
beside the identities that are expected there and that the tests of `rss` check.

    python3 -m venv /tmp/titles && /tmp/titles/bin/pip install guessit==4.2.1 flexget==3.22.7
    /tmp/titles/bin/python tests/bench/titles.py >host/docs/rss-titles.md

FlexGet does not find out what a series is called: its parsers are given the expected name, and say whether the title
is of that series and which episode it is. So its columns are about the episode only."""
import re
import sys
import unicodedata
from pathlib import Path

import guessit
from flexget.components.parsing.parsers.parser_guessit import ParserGuessit
from flexget.components.parsing.parsers.parser_internal import ParserInternal

TABLE = Path(__file__).parents[2] / 'host/rss/tests/titles.tsv'


def listed(value):
    return [] if value is None else value if isinstance(value, list) else [value]


def plain(name):
    """A name without what may separate its words."""
    name = unicodedata.normalize('NFKC', str(name)).lower().replace('&', 'and')
    return re.sub(r'[\W_]+', '', name)


def episodes(key):
    """An identity as seasons, episodes and a date: `S01E02-E03` is (1, 2, 3)."""
    found = re.fullmatch(r'(?:S(\d+))?(?:E?(\d+))?(?:-E?(\d+))?', key)
    if found is None:
        return ('other', key)
    season, first, last = (int(number) if number else None for number in found.groups())
    return (season, first, last if last is not None else first)


def of_guessit(title):
    """The name and the episodes by guessit."""
    try:
        said = guessit.guessit(title, {'type': 'episode'})
    except Exception as error:  # it fails on some titles
        return None, ('error', type(error).__name__)
    if 'date' in said:
        return said.get('title'), ('other', str(said['date']))
    seasons, numbers = listed(said.get('season')), listed(said.get('episode')) or listed(said.get('absolute_episode'))
    if len(seasons) > 1 and not numbers:
        return said.get('title'), ('other', f'S{seasons[0]:02}-S{seasons[-1]:02}')
    season = seasons[0] if seasons else None
    return said.get('title'), (season, numbers[0] if numbers else None, numbers[-1] if numbers else None)


def of_flexget(parser, title, name):
    """The episodes by a parser of FlexGet, which is told the name."""
    try:
        said = parser.parse_series(title, name=name)
    except Exception as error:
        return ('error', type(error).__name__)
    if not said.valid:
        return None
    if said.id_type == 'date':
        return ('other', str(said.id)[:10])
    if said.id_type == 'sequence':
        return (None, said.id, said.id + max(said.episodes - 1, 0))
    if said.id_type == 'ep':
        last = None if said.episode is None else said.episode + max(said.episodes - 1, 0)
        return (said.season, said.episode or None, last or None)
    return ('other', str(said.identifier))


def shown(found):
    if found is None:
        return 'none'
    if found[0] in ('other', 'error'):
        return ' '.join(found) if found[0] == 'error' else found[1]
    season, first, last = found
    text = '' if season is None else f'S{season:02}'
    text += '' if first is None else f'E{first:02}'
    return (text if last == first else f'{text}-E{last:02}') or 'none'


def main():
    table = Path(sys.argv[1]) if len(sys.argv) > 1 else TABLE
    lines = [line for line in table.read_text().splitlines() if not line.startswith('# ')]
    internal, by_guessit = ParserInternal(), ParserGuessit()
    count, right, rows = 0, {'guessit': 0, 'guessit name': 0, 'FlexGet internal': 0, 'FlexGet guessit': 0}, []
    for line in lines:
        title, key, *_ = line.split('\t')
        name, _, episode = key.partition('#')
        expected = None if key == '-' or not episode else episodes(episode)
        guessed_name, guessed = of_guessit(title)
        guessed = None if guessed == (None, None, None) else guessed
        of_name = name if key != '-' else title
        found = {
            'guessit': guessed,
            'FlexGet internal': of_flexget(internal, title, of_name),
            'FlexGet guessit': of_flexget(by_guessit, title, of_name),
        }
        count += 1
        for parser, said in found.items():
            right[parser] += said == expected
        has_name = key == '-' or plain(guessed_name or '') == plain(name)
        right['guessit name'] += has_name
        if not has_name or any(said != expected for said in found.values()):
            said = [shown(found[parser]) for parser in found]
            cells = [title, key, f'{guessed_name or "none"}', *said]
            rows.append('| ' + ' | '.join(cell.replace('|', r'\|') for cell in cells) + ' |')
    print('# Titles beside guessit and FlexGet\n')
    print('<!-- Written by `tests/bench/titles.py`, which says how. -->\n')
    print(f'{count} titles of `host/rss/tests/titles.tsv`; `rss` reads all of them as expected there, which is a test.')
    print('As expected are:\n')
    print('| | the series | the episode |\n|---|--:|--:|')
    print(f'| `rss` | {count} | {count} |')
    print(f'| guessit {guessit.__version__} | {right["guessit name"]} | {right["guessit"]} |')
    print(f'| FlexGet, internal parser | told | {right["FlexGet internal"]} |')
    print(f'| FlexGet, by guessit | told | {right["FlexGet guessit"]} |')
    print('\nThe expectations are ours. Of those below one is less than could be had: `WWE Raw 8th January 2024` names a')
    print('day, which guessit finds. Such an item is judged by itself, and taken.')
    print('\nWhere at least one of them differs:\n')
    print('| Title | Expected | guessit: series | guessit | FlexGet, internal | FlexGet, by guessit |')
    print('|---|---|---|---|---|---|')
    print('\n'.join(rows))


if __name__ == '__main__':
    main()
