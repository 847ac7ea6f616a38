"""Small texts in five languages, each about ships or bread."""

import itertools

# By language: openings, what ships do, what bread needs. Every text is one of each kind joined.
PARTS = {
    "en": (
        "This is the story of the day and it was for us that",
        ["the captain and the crew sail with the ship", "the harbour is full of ships and sails"],
        ["the baker and the flour are in the oven", "the dough is with butter and not with salt"],
    ),
    "de": (
        "Das ist die Geschichte von dem Tag und es war für uns, dass",
        [
            "der Kapitän und die Mannschaft mit dem Schiff segeln",
            "der Hafen ist nicht ohne Schiffe und Segel",
        ],
        [
            "der Bäcker und das Mehl auch in dem Ofen sind",
            "der Teig wird mit Butter und nicht mit Salz gemacht",
        ],
    ),
    "fr": (
        "C'est une histoire que les gens disent sur le jour et qui est pour nous, aujourd'hui",
        [
            "le capitaine est avec les marins dans le bateau",
            "les voiles sont dans le port et pas sur la mer",
        ],
        [
            "le boulanger est avec la farine dans le four",
            "une pâte que les gens font avec du beurre et pas du sel",
        ],
    ),
    "es": (
        "Esta es una historia que los hombres dicen para el día y que es como",
        [
            "el capitán con los marineros en los barcos del puerto",
            "las velas del barco por el mar para los marineros",
        ],
        [
            "el panadero con la harina para los panes del horno",
            "una masa con mantequilla y con la sal, pero más para el pan",
        ],
    ),
    "it": (
        "Questa è una storia che gli uomini dicono per il giorno e che non è",
        [
            "il capitano con i marinai che sono nel porto della nave",
            "le vele della nave sono anche nel mare e non nel porto",
        ],
        [
            "il fornaio con la farina che non è nel forno del pane",
            "una pasta che si fa con il burro e anche con il sale",
        ],
    ),
}


def texts_in(language, n=40):
    """Return texts of two topics by turns."""
    opening, *topics = PARTS[language]
    bodies = itertools.chain.from_iterable(zip(*(itertools.cycle(t) for t in topics), strict=False))
    return [f"{opening} {body} {i % 7}{i % 7}." for i, body in zip(range(n), bodies, strict=False)]
