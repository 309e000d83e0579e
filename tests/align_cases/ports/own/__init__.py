"""Models as another author writes them: names, layouts and ops of their own, what they do is that of transformers'.

What a fault changes is an attribute or a method of one module, so that it is planted in one place.
"""
