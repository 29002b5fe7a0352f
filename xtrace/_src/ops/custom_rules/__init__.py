"""Operations whose rules a user gives: calls of functions with their own derivative, transpose or batched form.

Under traces that compute at once the function and its rules stay Python functions; where something records, the
function is a jaxpr in the equation, and the rules wait beside it until a transformation asks for them.
"""
